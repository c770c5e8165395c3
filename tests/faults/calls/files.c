// The calls of libc that reach files, under both of their names: what the native side and Python's call.
#include "inject.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static size_t half(size_t size) { return size > 1 ? size / 2 : size; }

// --- opening

static int may_open(int at, const char* path, int flags) {
  return flags & (O_CREAT | O_TRUNC) ? step(kCreate, "create", at, path, 0, NULL) : step(kOpen, "open", at, path, 0, NULL);
}
#define BITS(flags) \
  va_list list; \
  va_start(list, flags); \
  const mode_t bits = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(list, mode_t) : 0; \
  va_end(list)
#define OPEN(name) \
  int name(const char* path, int flags, ...) { \
    NEXT(int, #name, const char*, int, ...); \
    BITS(flags); \
    return may_open(AT_FDCWD, path, flags) ? -1 : real(path, flags, bits); \
  }
#define OPENAT(name) \
  int name(int at, const char* path, int flags, ...) { \
    NEXT(int, #name, int, const char*, int, ...); \
    BITS(flags); \
    return may_open(at, path, flags) ? -1 : real(at, path, flags, bits); \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

long syscall(long number, ...) {
  NEXT(long, "syscall", long, ...);
  va_list list;
  va_start(list, number);
  long given[6];
  for (int i = 0; i < 6; ++i) given[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_openat2 && may_open((int)given[0], (const char*)given[1], (int)((struct open_how*)given[2])->flags))
    return -1;
  return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
int close(int fd) {
  NEXT(int, "close", int);
  // What fails is writing that was put off: reading has none.
  const int flags = is_armed() ? fcntl(fd, F_GETFL) : 0;
  if ((flags & O_ACCMODE) == O_RDONLY || step(kClose, "close", fd, NULL, 0, NULL) == 0) return real(fd);
  const int error = errno;
  real(fd);  // as Linux does: the descriptor is gone
  errno = error;
  return -1;
}

// --- reading and writing: MOVE for one buffer, MOVES for several

#define MOVE(kind, call, name, given, declared, used) \
  ssize_t name declared { \
    NEXT(ssize_t, #name, given); \
    const int how = step(kind, call, fd, NULL, 0, NULL); \
    if (how > 0) return -1; \
    if (how == kBeShort) size = half(size); \
    return real used; \
  }
#define LIST(...) __VA_ARGS__
MOVE(kRead, "read", read, LIST(int, void*, size_t), (int fd, void* to, size_t size), (fd, to, size))
MOVE(kRead, "pread", pread, LIST(int, void*, size_t, off_t), (int fd, void* to, size_t size, off_t at),
     (fd, to, size, at))
MOVE(kRead, "pread", pread64, LIST(int, void*, size_t, off64_t), (int fd, void* to, size_t size, off64_t at),
     (fd, to, size, at))
MOVE(kWrite, "write", write, LIST(int, const void*, size_t), (int fd, const void* of, size_t size), (fd, of, size))
MOVE(kWrite, "pwrite", pwrite, LIST(int, const void*, size_t, off_t), (int fd, const void* of, size_t size, off_t at),
     (fd, of, size, at))
MOVE(kWrite, "pwrite", pwrite64, LIST(int, const void*, size_t, off64_t),
     (int fd, const void* of, size_t size, off64_t at), (fd, of, size, at))

#define MOVES(kind, call, name, given, declared, used) \
  ssize_t name declared { \
    NEXT(ssize_t, #name, given); \
    const int how = step(kind, call, fd, NULL, 0, NULL); \
    if (how > 0) return -1; \
    const struct iovec first = {pieces[0].iov_base, count > 1 ? pieces[0].iov_len : half(pieces[0].iov_len)}; \
    if (how == kBeShort) pieces = &first, count = 1; \
    return real used; \
  }
#define PIECES int fd, const struct iovec *pieces, int count
MOVES(kRead, "read", readv, LIST(PIECES), (PIECES), (fd, pieces, count))
MOVES(kRead, "pread", preadv, LIST(PIECES, off_t), (PIECES, off_t at), (fd, pieces, count, at))
MOVES(kRead, "pread", preadv64, LIST(PIECES, off64_t), (PIECES, off64_t at), (fd, pieces, count, at))
MOVES(kWrite, "write", writev, LIST(PIECES), (PIECES), (fd, pieces, count))
MOVES(kWrite, "pwrite", pwritev, LIST(PIECES, off_t), (PIECES, off_t at), (fd, pieces, count, at))
MOVES(kWrite, "pwrite", pwritev64, LIST(PIECES, off64_t), (PIECES, off64_t at), (fd, pieces, count, at))

#define PREADV2(name, offset) \
  ssize_t name(int fd, const struct iovec* pieces, int count, offset at, int flags) { \
    NEXT(ssize_t, #name, int, const struct iovec*, int, offset, int); \
    if ((flags & RWF_NOWAIT) && is_cold()) { \
      errno = EAGAIN; \
      return -1; \
    } \
    const int how = step(kRead, "preadv2", fd, NULL, 0, NULL); \
    if (how > 0) return -1; \
    return real(fd, pieces, how == kBeShort ? (count + 1) / 2 : count, at, flags); \
  }
PREADV2(preadv2, off_t)
PREADV2(preadv64v2, off64_t)

ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* at2, size_t size, unsigned flags) {
  NEXT(ssize_t, "copy_file_range", int, off64_t*, int, off64_t*, size_t, unsigned);
  const int how = step(kCopy, "copy_range", to, NULL, 0, NULL);
  return how > 0 ? -1 : real(from, at, to, at2, how == kBeShort ? half(size) : size, flags);
}
#define SENDFILE(name, offset) \
  ssize_t name(int to, int from, offset* at, size_t size) { \
    NEXT(ssize_t, #name, int, int, offset*, size_t); \
    const int how = step(kCopy, "sendfile", to, NULL, 0, NULL); \
    return how > 0 ? -1 : real(to, from, at, how == kBeShort ? half(size) : size); \
  }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

// --- calls of one descriptor

#define BY_FD(result, failed, kind, call, name, given, declared, used) \
  result name declared { \
    NEXT(result, #name, given); \
    return step(kind, call, fd, NULL, 0, NULL) > 0 ? failed : real used; \
  }
BY_FD(int, -1, kSync, "fsync", fsync, LIST(int), (int fd), (fd))
BY_FD(int, -1, kSync, "fsync", fdatasync, LIST(int), (int fd), (fd))
BY_FD(int, -1, kLock, "flock", flock, LIST(int, int), (int fd, int how), (fd, how))
BY_FD(int, -1, kRoom, "ftruncate", ftruncate, LIST(int, off_t), (int fd, off_t size), (fd, size))
BY_FD(int, -1, kRoom, "ftruncate", ftruncate64, LIST(int, off64_t), (int fd, off64_t size), (fd, size))
BY_FD(int, -1, kRoom, how == 0 ? "allocate" : "punch", fallocate, LIST(int, int, off_t, off_t),
      (int fd, int how, off_t at, off_t size), (fd, how, at, size))
BY_FD(int, -1, kRoom, how == 0 ? "allocate" : "punch", fallocate64, LIST(int, int, off64_t, off64_t),
      (int fd, int how, off64_t at, off64_t size), (fd, how, at, size))
BY_FD(int, -1, kStat, "fstat", fstat, LIST(int, struct stat*), (int fd, struct stat* to), (fd, to))
BY_FD(int, -1, kStat, "fstat", fstat64, LIST(int, struct stat64*), (int fd, struct stat64* to), (fd, to))
BY_FD(DIR*, NULL, kList, "fdopendir", fdopendir, LIST(int), (int fd), (fd))

int posix_fallocate(int fd, off_t at, off_t size) {
  NEXT(int, "posix_fallocate", int, off_t, off_t);
  const int error = step(kRoom, "allocate", fd, NULL, 0, NULL);
  return error > 0 ? error : real(fd, at, size);
}
int posix_fallocate64(int fd, off64_t at, off64_t size) {
  NEXT(int, "posix_fallocate64", int, off64_t, off64_t);
  const int error = step(kRoom, "allocate", fd, NULL, 0, NULL);
  return error > 0 ? error : real(fd, at, size);
}
int ioctl(int fd, unsigned long request, ...) {
  NEXT(int, "ioctl", int, unsigned long, ...);
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (request == FICLONE && step(kClone, "clone", fd, NULL, 0, NULL)) return -1;
  return real(fd, request, argument);
}
#define MMAP(name, offset) \
  void* name(void* where, size_t size, int access, int how, int fd, offset at) { \
    NEXT(void*, #name, void*, size_t, int, int, int, offset); \
    if (fd >= 0 && step(kMap, "mmap", fd, NULL, 0, NULL)) return MAP_FAILED; \
    return real(where, size, access, how, fd, at); \
  }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

// --- calls of one path

#define BY_PATH(kind, call, name, given, declared, used) \
  int name declared { \
    NEXT(int, #name, given); \
    return step(kind, call, AT_FDCWD, path, 0, NULL) > 0 ? -1 : real used; \
  }
#define BY_PATH_AT(kind, call, name, given, declared, used) \
  int name declared { \
    NEXT(int, #name, given); \
    return step(kind, call, at, path, 0, NULL) > 0 ? -1 : real used; \
  }
#define PATH const char* path
BY_PATH(kName, "mkdir", mkdir, LIST(PATH, mode_t), (PATH, mode_t bits), (path, bits))
BY_PATH(kRemove, "unlink", unlink, LIST(PATH), (PATH), (path))
BY_PATH(kRemove, "unlink", rmdir, LIST(PATH), (PATH), (path))
BY_PATH(kRoom, "truncate", truncate, LIST(PATH, off_t), (PATH, off_t size), (path, size))
BY_PATH(kRoom, "truncate", truncate64, LIST(PATH, off64_t), (PATH, off64_t size), (path, size))
BY_PATH(kStat, "stat", stat, LIST(PATH, struct stat*), (PATH, struct stat* to), (path, to))
BY_PATH(kStat, "stat", stat64, LIST(PATH, struct stat64*), (PATH, struct stat64* to), (path, to))
BY_PATH(kStat, "stat", lstat, LIST(PATH, struct stat*), (PATH, struct stat* to), (path, to))
BY_PATH(kStat, "stat", lstat64, LIST(PATH, struct stat64*), (PATH, struct stat64* to), (path, to))
BY_PATH_AT(kName, "mkdir", mkdirat, LIST(int, PATH, mode_t), (int at, PATH, mode_t bits), (at, path, bits))
BY_PATH_AT(kRemove, "unlink", unlinkat, LIST(int, PATH, int), (int at, PATH, int flags), (at, path, flags))
BY_PATH_AT(kStat, "fstatat", fstatat, LIST(int, PATH, struct stat*, int), (int at, PATH, struct stat* to, int flags),
           (at, path, to, flags))
BY_PATH_AT(kStat, "fstatat", fstatat64, LIST(int, PATH, struct stat64*, int),
           (int at, PATH, struct stat64* to, int flags), (at, path, to, flags))
BY_PATH_AT(kStat, "statx", statx, LIST(int, PATH, int, unsigned, struct statx*),
           (int at, PATH, int flags, unsigned mask, struct statx* to), (at, path, flags, mask, to))

DIR* opendir(const char* path) {
  NEXT(DIR*, "opendir", const char*);
  return step(kList, "opendir", AT_FDCWD, path, 0, NULL) ? NULL : real(path);
}
#define READDIR(name, entry) \
  entry* name(DIR* folder) { \
    NEXT(entry*, #name, DIR*); \
    return step(kNext, "readdir", dirfd(folder), NULL, 0, NULL) ? NULL : real(folder); \
  }
READDIR(readdir, struct dirent)
READDIR(readdir64, struct dirent64)

// --- calls of two paths

#define TWO int at, const char *from, int at2, const char *to
#define BY_TWO(kind, call, name, given, declared, used, first, second) \
  int name declared { \
    NEXT(int, #name, given); \
    if (step(kind, call, first, from, second, to)) return -1; \
    const int result = real used; \
    if (result == 0) was_published(to); \
    return result; \
  }
BY_TWO(kName, "rename", rename, LIST(PATH, const char*), (const char* from, const char* to), (from, to), AT_FDCWD, AT_FDCWD)
BY_TWO(kName, "rename", renameat, LIST(TWO), (TWO), (at, from, at2, to), at, at2)
BY_TWO(kName, "rename", renameat2, LIST(TWO, unsigned), (TWO, unsigned flags), (at, from, at2, to, flags), at, at2)
BY_TWO(kName, "link", link, LIST(PATH, const char*), (const char* from, const char* to), (from, to), AT_FDCWD, AT_FDCWD)
BY_TWO(kName, "link", linkat, LIST(TWO, int), (TWO, int flags), (at, from, at2, to, flags), at, at2)
