// The log of record.c, and the places that its calls are about.
//
// record_begin(log, root) begins in a process; processes that it starts go on with it by the variable CRASH_RECORD. The
// log is a shared mapping; a robust mutex in it is held around each call and its entry, so that their order is that of
// the calls. record_kill(k) ends the process that makes the k-th entry from then on, before the call.
#ifndef PENSTOCK_CRASH_RECORD_LOG_H
#define PENSTOCK_CRASH_RECORD_LOG_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t kLogBytes = 1ull << 30;  // sparse

struct head {
  uint64_t used;  // bytes of the file, this head among them
  int64_t left;   // entries until a process is killed; < 0: none is
  pthread_mutex_t mutex;
};
// Followed by `name`, `name2` and `data`; entries.py reads it.
struct entry {
  uint32_t bytes, kind, pid, name, name2, data;
  uint64_t inode, parent, parent2, offset, size;
};

static struct head* head;
static char root[PATH_MAX];
static size_t root_size;
static __thread int inside;

// ---- the log

static void hold(void) {
  if (pthread_mutex_lock(&head->mutex) == EOWNERDEAD) pthread_mutex_consistent(&head->mutex);
  inside = 1;
}

static void let_go(void) {
  int error = errno;
  inside = 0;
  pthread_mutex_unlock(&head->mutex);
  errno = error;
}

// Before a call that is to be recorded.
static void count(void) {
  if (head->left >= 0 && head->left-- == 0) syscall(SYS_exit_group, 77);
}

static void put(char kind, struct entry entry, const char* name, const char* name2, const void* data, size_t size) {
  entry.kind = (uint32_t)kind;
  entry.pid = (uint32_t)getpid();
  entry.name = name ? (uint32_t)strlen(name) : 0;
  entry.name2 = name2 ? (uint32_t)strlen(name2) : 0;
  entry.data = (uint32_t)size;
  entry.bytes = (uint32_t)((sizeof entry + entry.name + entry.name2 + entry.data + 7) / 8 * 8);
  if (head->used + entry.bytes > kLogBytes) abort();
  char* at = (char*)head + head->used;
  memcpy(at, &entry, sizeof entry);
  at += sizeof entry;
  if (name) memcpy(at, name, entry.name);
  if (name2) memcpy(at + entry.name, name2, entry.name2);
  if (size) memcpy(at + entry.name + entry.name2, data, size);
  head->used += entry.bytes;
}

static int map_log(const char* log, const char* below, int makes) {
  int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_RDWR | O_CLOEXEC | (makes ? O_CREAT | O_TRUNC : 0), 0600);
  if (fd < 0 || (makes && syscall(SYS_ftruncate, fd, kLogBytes) != 0)) return -1;
  struct head* mapped = (void*)syscall(SYS_mmap, NULL, kLogBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == MAP_FAILED) return -1;
  if (makes) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mapped->mutex, &how);
    mapped->used = 128;  // behind this head
    mapped->left = -1;
  }
  root_size = (size_t)snprintf(root, sizeof root, "%s", below);
  head = mapped;
  return 0;
}

int record_begin(const char* log, const char* below) {
  char both[2 * PATH_MAX];
  snprintf(both, sizeof both, "%s\n%s", log, below);
  setenv("CRASH_RECORD", both, 1);
  return map_log(log, below, 1);
}

void record_end(void) {
  unsetenv("CRASH_RECORD");
  if (head) munmap(head, kLogBytes);
  head = NULL;
}

void record_kill(long entries) {
  head->left = entries;
}

__attribute__((constructor)) static void go_on(void) {
  char both[2 * PATH_MAX];
  const char* given = getenv("CRASH_RECORD");
  if (!given) return;
  snprintf(both, sizeof both, "%s", given);
  char* below = strchr(both, '\n');
  if (!below) return;
  *below++ = 0;
  map_log(both, below, 0);
}

// ---- places

static int is_below(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < (ssize_t)root_size || memcmp(path, root, root_size) != 0) return 0;
  return size == (ssize_t)root_size || path[root_size] == '/';
}

// A file or folder that is recorded; its inode's number, 0 for others.
static uint64_t inode_of(int fd, struct stat* status) {
  if (!head || inside || !is_below(fd) || fstat(fd, status) != 0) return 0;
  return S_ISREG(status->st_mode) || S_ISDIR(status->st_mode) ? status->st_ino : 0;
}

struct place {
  int folder;  // an open descriptor; < 0: not recorded
  uint64_t inode;
  char name[NAME_MAX + 1];
};

static struct place place_of(int at, const char* path) {
  struct place place = {-1, 0, ""};
  struct stat status;
  char above[PATH_MAX];
  if (!head || inside || !path || strlen(path) >= sizeof above) return place;
  strcpy(above, path);
  for (size_t size = strlen(above); size > 1 && above[size - 1] == '/';) above[--size] = 0;
  char* slash = strrchr(above, '/');
  const char* name = slash ? slash + 1 : above;
  if (strlen(name) == 0 || strlen(name) > NAME_MAX || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return place;
  strcpy(place.name, name);
  if (slash) slash[slash == above] = 0;
  int fd = (int)syscall(SYS_openat, at, slash ? above : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return place;
  if (!is_below(fd) || fstat(fd, &status) != 0) {
    close(fd);
    return place;
  }
  place.folder = fd;
  place.inode = status.st_ino;
  return place;
}

static uint64_t named(const struct place* place) {
  struct stat status;
  return fstatat(place->folder, place->name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

static void leave(struct place* place) {
  int error = errno;
  if (place->folder >= 0) close(place->folder);
  errno = error;
}

#endif
