// LD_PRELOAD shim: counts the calls that change a file system, and at the k-th exits, fails, or writes less.
//
// shim_arm() begins counting, shim_disarm() ends it. One thread. Calls are logged as "<call>\t<path>[\t<second path>]".
// shim_refuse() makes each call of one name fail, as on a file system that does not know it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kCount = 0, kKill = 1, kFail = 2, kShort = 3 };
static int armed, mode, error_number;
static long target, count;
static char log_text[1 << 22];
static size_t log_size;
static struct {
  char call[16];
  int error;
} refused[8];
static int refusals;

void shim_arm(int new_mode, long k, int error) {
  mode = new_mode;
  target = k;
  error_number = error;
  count = 0;
  log_size = 0;
  log_text[0] = 0;
  armed = 1;
}
long shim_disarm(void) {
  armed = 0;
  return count;
}
const char* shim_log(void) { return log_text; }
void shim_refuse(const char* call, int error) {
  snprintf(refused[refusals].call, sizeof refused->call, "%s", call);
  refused[refusals++].error = error;
}
void shim_allow(void) { refusals = 0; }

static void fd_path(int fd, char* out) {
  char link[64];
  if (fd == AT_FDCWD) {
    out[0] = 0;
    return;
  }
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, out, 4095);
  out[n < 0 ? 0 : n] = 0;
}

// 1 if the call must fail; errno is set then.
static int step(const char* call, int fd, const char* name, int fd2, const char* name2) {
  if (!armed) return 0;
  armed = 0;  // what the shim itself calls is not counted
  char a[4096], b[4096];
  fd_path(fd, a);
  if (log_size + 16384 < sizeof log_text) {
    log_size += (size_t)sprintf(log_text + log_size, "%s\t%s%s%s", call, a, name && a[0] ? "/" : "", name ? name : "");
    if (name2) {
      fd_path(fd2, b);
      log_size += (size_t)sprintf(log_text + log_size, "\t%s/%s", b, name2);
    }
    log_size += (size_t)sprintf(log_text + log_size, "\n");
  }
  armed = 1;
  ++count;
  for (int i = 0; i < refusals; ++i) {
    if (strcmp(refused[i].call, call) != 0) continue;
    errno = refused[i].error;
    return 1;
  }
  if (count != target) return 0;
  if (mode == kKill) syscall(SYS_exit_group, 77);
  if (mode != kFail) return 0;
  errno = error_number;
  return 1;
}

#define NEXT(result, name, ...) \
  static result (*real)(__VA_ARGS__); \
  if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void* data, size_t size) {
  NEXT(ssize_t, "write", int, const void*, size_t);
  if (step("write", fd, NULL, 0, NULL)) return -1;
  if (armed && mode == kShort) {
    if (count % 3 == 0) {
      errno = EINTR;
      return -1;
    }
    if (size > 1) size = size / 2;
  }
  return real(fd, data, size);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  NEXT(ssize_t, "pwrite", int, const void*, size_t, off_t);
  if (step("pwrite", fd, NULL, 0, NULL)) return -1;
  if (armed && mode == kShort && size > 1) size = size / 2;
  return real(fd, data, size, offset);
}
int fallocate(int fd, int how, off_t offset, off_t size) {
  NEXT(int, "fallocate", int, int, off_t, off_t);
  return step(how == 0 ? "allocate" : "punch", fd, NULL, 0, NULL) ? -1 : real(fd, how, offset, size);
}
int fsync(int fd) {
  NEXT(int, "fsync", int);
  return step("fsync", fd, NULL, 0, NULL) ? -1 : real(fd);
}
int close(int fd) {
  NEXT(int, "close", int);
  if (step("close", fd, NULL, 0, NULL)) {
    int error = errno;
    real(fd);  // as Linux does: the descriptor is gone
    errno = error;
    return -1;
  }
  return real(fd);
}
int flock(int fd, int how) {
  NEXT(int, "flock", int, int);
  return step("flock", fd, NULL, 0, NULL) ? -1 : real(fd, how);
}
int ioctl(int fd, unsigned long request, ...) {
  NEXT(int, "ioctl", int, unsigned long, ...);
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (request == FICLONE && step("clone", fd, NULL, 0, NULL)) return -1;
  return real(fd, request, argument);
}
ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* at2, size_t size, unsigned flags) {
  NEXT(ssize_t, "copy_file_range", int, off64_t*, int, off64_t*, size_t, unsigned);
  if (step("copy_range", to, NULL, 0, NULL)) return -1;
  if (armed && mode == kShort) {
    static int odd;
    odd = !odd;
    if (!odd) {
      errno = EXDEV;
      return -1;
    }
    if (size > 1) size = size / 2;
  }
  return real(from, at, to, at2, size, flags);
}
int mkdir(const char* path, mode_t bits) {
  NEXT(int, "mkdir", const char*, mode_t);
  return step("mkdir", AT_FDCWD, path, 0, NULL) ? -1 : real(path, bits);
}
int mkdirat(int at, const char* path, mode_t bits) {
  NEXT(int, "mkdirat", int, const char*, mode_t);
  return step("mkdir", at, path, 0, NULL) ? -1 : real(at, path, bits);
}
int unlinkat(int at, const char* path, int flags) {
  NEXT(int, "unlinkat", int, const char*, int);
  return step("unlink", at, path, 0, NULL) ? -1 : real(at, path, flags);
}
int linkat(int at, const char* from, int at2, const char* to, int flags) {
  NEXT(int, "linkat", int, const char*, int, const char*, int);
  return step("link", at, from, at2, to) ? -1 : real(at, from, at2, to, flags);
}
int renameat(int at, const char* from, int at2, const char* to) {
  NEXT(int, "renameat", int, const char*, int, const char*);
  return step("rename", at, from, at2, to) ? -1 : real(at, from, at2, to);
}
int renameat2(int at, const char* from, int at2, const char* to, unsigned flags) {
  NEXT(int, "renameat2", int, const char*, int, const char*, unsigned);
  return step("rename", at, from, at2, to) ? -1 : real(at, from, at2, to, flags);
}
static int open_step(int at, const char* path, int flags) {
  return (flags & O_CREAT) ? step("create", at, path, 0, NULL) : step("open", at, path, 0, NULL);
}
int openat(int at, const char* path, int flags, ...) {
  NEXT(int, "openat", int, const char*, int, ...);
  va_list list;
  va_start(list, flags);
  mode_t bits = (flags & O_CREAT) ? va_arg(list, mode_t) : 0;
  va_end(list);
  return open_step(at, path, flags) ? -1 : real(at, path, flags, bits);
}
int openat64(int at, const char* path, int flags, ...) {
  NEXT(int, "openat64", int, const char*, int, ...);
  va_list list;
  va_start(list, flags);
  mode_t bits = (flags & O_CREAT) ? va_arg(list, mode_t) : 0;
  va_end(list);
  return open_step(at, path, flags) ? -1 : real(at, path, flags, bits);
}
