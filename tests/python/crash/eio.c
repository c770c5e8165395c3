// LD_PRELOAD shim: every call of one name fails with EIO where it is about a file whose path ends in a text.
//
// eio_arm(call, end, after) begins, eio_disarm() ends it and says how often it was so; with `after` only once a
// dataset.json has been put by a rename.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char wanted_calls[128], wanted_end[256];
static int only_after, is_after, times, armed;

void eio_arm(const char* calls, const char* end, int after) {
  snprintf(wanted_calls, sizeof wanted_calls, " %s ", calls);
  snprintf(wanted_end, sizeof wanted_end, "%s", end);
  only_after = after;
  is_after = times = 0;
  armed = 1;
}
int eio_disarm(void) {
  armed = 0;
  return times;
}

static int fails(const char* call, int fd, const char* name) {
  char padded[32], link[64], path[4096];
  if (!armed || (only_after && !is_after)) return 0;
  snprintf(padded, sizeof padded, " %s ", call);
  if (strstr(wanted_calls, padded) == NULL) return 0;
  if (name == NULL) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = 0;
    name = path;
  }
  size_t size = strlen(name), end = strlen(wanted_end);
  if (size < end || strcmp(name + size - end, wanted_end) != 0) return 0;
  ++times;
  errno = EIO;
  return 1;
}

#define NEXT(result, name, ...) \
  static result (*real)(__VA_ARGS__); \
  if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)
#define BY_FD(result, name, declared, given, ...) \
  result name declared { \
    NEXT(result, #name, __VA_ARGS__); \
    return fails(#name, fd, NULL) ? -1 : real given; \
  }

BY_FD(int, fstat, (int fd, struct stat* to), (fd, to), int, struct stat*)
BY_FD(int, fsync, (int fd), (fd), int)
BY_FD(int, flock, (int fd, int how), (fd, how), int, int)
BY_FD(int, ftruncate, (int fd, off_t size), (fd, size), int, off_t)
BY_FD(ssize_t, read, (int fd, void* to, size_t size), (fd, to, size), int, void*, size_t)
BY_FD(ssize_t, pread, (int fd, void* to, size_t size, off_t at), (fd, to, size, at), int, void*, size_t, off_t)
BY_FD(ssize_t, write, (int fd, const void* of, size_t size), (fd, of, size), int, const void*, size_t)
BY_FD(ssize_t, pwrite, (int fd, const void* of, size_t size, off_t at), (fd, of, size, at), int, const void*, size_t,
      off_t)

int fstatat(int at, const char* path, struct stat* to, int flags) {
  NEXT(int, "fstatat", int, const char*, struct stat*, int);
  return fails("fstatat", at, path) ? -1 : real(at, path, to, flags);
}
int unlinkat(int at, const char* path, int flags) {
  NEXT(int, "unlinkat", int, const char*, int);
  return fails("unlinkat", at, path) ? -1 : real(at, path, flags);
}
int open(const char* path, int flags, ...) {
  NEXT(int, "open", const char*, int, ...);
  va_list list;
  va_start(list, flags);
  mode_t bits = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(list, mode_t) : 0;
  va_end(list);
  return fails("open", AT_FDCWD, path) ? -1 : real(path, flags, bits);
}
int openat(int at, const char* path, int flags, ...) {
  NEXT(int, "openat", int, const char*, int, ...);
  va_list list;
  va_start(list, flags);
  mode_t bits = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(list, mode_t) : 0;
  va_end(list);
  return fails("openat", at, path) ? -1 : real(at, path, flags, bits);
}
int renameat(int at, const char* from, int at2, const char* to) {
  NEXT(int, "renameat", int, const char*, int, const char*);
  int result = real(at, from, at2, to);
  if (result == 0 && strcmp(to, "dataset.json") == 0) is_after = 1;
  return result;
}
int renameat2(int at, const char* from, int at2, const char* to, unsigned flags) {
  NEXT(int, "renameat2", int, const char*, int, const char*, unsigned);
  int result = real(at, from, at2, to, flags);
  if (result == 0 && strcmp(to, "dataset.json") == 0) is_after = 1;
  return result;
}
