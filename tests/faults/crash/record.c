// LD_PRELOAD library: records every call that changes files below one folder, in the order in which it took effect.
//
// Files are told by inode numbers. CRASH_REFUSE=link: links fail as between file systems, so that files are copied.
#define _GNU_SOURCE
#include "record_log.h"

#include <dlfcn.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#define NEXT(result, name, ...)       \
  static result (*real)(__VA_ARGS__); \
  if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

// ---- names

#define NAMING(kind, call, declared, given, at, path, found, ...)   \
  int call declared {                                               \
    NEXT(int, #call, __VA_ARGS__);                                  \
    struct place place = place_of(at, path);                        \
    if (place.folder < 0) return real given;                        \
    hold();                                                         \
    count();                                                        \
    int result = real given;                                        \
    if (result == 0) {                                              \
      struct entry entry = {.parent = place.inode, .inode = found}; \
      put(kind, entry, place.name, NULL, NULL, 0);                  \
    }                                                               \
    let_go();                                                       \
    leave(&place);                                                  \
    return result;                                                  \
  }

NAMING('D', mkdir, (const char* path, mode_t bits), (path, bits), AT_FDCWD, path, named(&place), const char*, mode_t)
NAMING('D', mkdirat, (int at, const char* path, mode_t bits), (at, path, bits), at, path, named(&place), int,
       const char*, mode_t)
NAMING('U', unlink, (const char* path), (path), AT_FDCWD, path, 0, const char*)
NAMING('U', unlinkat, (int at, const char* path, int flags), (at, path, flags), at, path, 0, int, const char*, int)
NAMING('U', rmdir, (const char* path), (path), AT_FDCWD, path, 0, const char*)
NAMING('U', remove, (const char* path), (path), AT_FDCWD, path, 0, const char*)

static int renamed(int at, const char* from, int at2, const char* to, unsigned flags) {
  NEXT(int, "renameat2", int, const char*, int, const char*, unsigned);
  struct place place = place_of(at, from), place2 = place_of(at2, to);
  if (place.folder < 0 || place2.folder < 0) {
    leave(&place);
    leave(&place2);
    return real(at, from, at2, to, flags);
  }
  hold();
  count();
  int result = real(at, from, at2, to, flags);
  if (result == 0) {
    struct entry entry = {.parent = place.inode, .parent2 = place2.inode, .inode = named(&place2), .size = flags};
    put('M', entry, place.name, place2.name, NULL, 0);
  }
  let_go();
  leave(&place);
  leave(&place2);
  return result;
}
int rename(const char* from, const char* to) {
  return renamed(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int at, const char* from, int at2, const char* to) {
  return renamed(at, from, at2, to, 0);
}
int renameat2(int at, const char* from, int at2, const char* to, unsigned flags) {
  return renamed(at, from, at2, to, flags);
}

int linkat(int at, const char* from, int at2, const char* to, int flags) {
  NEXT(int, "linkat", int, const char*, int, const char*, int);
  struct place place = place_of(at2, to);
  if (place.folder < 0) return real(at, from, at2, to, flags);
  hold();
  count();
  int result = -1;
  const char* refused = getenv("CRASH_REFUSE");
  if (refused && strcmp(refused, "link") == 0) {
    errno = EXDEV;
  } else {
    result = real(at, from, at2, to, flags);
  }
  if (result == 0) {
    struct entry entry = {.parent = place.inode, .inode = named(&place)};
    put('L', entry, place.name, NULL, NULL, 0);
  }
  let_go();
  leave(&place);
  return result;
}
int link(const char* from, const char* to) {
  return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int symlinkat(const char* target, int at, const char* path) {
  NEXT(int, "symlinkat", const char*, int, const char*);
  struct place place = place_of(at, path);
  if (place.folder < 0) return real(target, at, path);
  hold();
  count();
  int result = real(target, at, path);
  if (result == 0) {
    struct entry entry = {.parent = place.inode, .inode = named(&place)};
    put('S', entry, place.name, NULL, target, strlen(target));
  }
  let_go();
  leave(&place);
  return result;
}
int symlink(const char* target, const char* path) {
  return symlinkat(target, AT_FDCWD, path);
}

// ---- opening

static int opened(int at, const char* path, int flags, mode_t bits) {
  NEXT(int, "openat", int, const char*, int, ...);
  if (!head || inside || !(flags & (O_CREAT | O_TRUNC | __O_TMPFILE))) return real(at, path, flags, bits);
  struct place place = place_of(at, path);
  struct stat status;
  if (place.folder < 0) return real(at, path, flags, bits);
  hold();
  count();
  int is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  uint64_t before = named(&place);
  int fd = real(at, path, flags, bits);
  if (fd >= 0 && fstat(fd, &status) == 0) {
    struct entry entry = {.parent = place.inode, .inode = status.st_ino};
    if (is_unnamed) {
      put('T', entry, NULL, NULL, NULL, 0);
    } else if (!before) {
      put('C', entry, place.name, NULL, NULL, 0);
    } else if (flags & O_TRUNC) {
      put('X', entry, NULL, NULL, NULL, 0);
    }
    if (flags & (O_SYNC | O_DSYNC)) put('?', entry, "a file that is opened to be synced at each write", NULL, NULL, 0);
  }
  let_go();
  leave(&place);
  return fd;
}

#define OPENING(call, at, declared)                                             \
  int call declared {                                                           \
    va_list list;                                                               \
    va_start(list, flags);                                                      \
    mode_t bits = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(list, mode_t) : 0; \
    va_end(list);                                                               \
    return opened(at, path, flags, bits);                                       \
  }
OPENING(open, AT_FDCWD, (const char* path, int flags, ...))
OPENING(open64, AT_FDCWD, (const char* path, int flags, ...))
OPENING(openat, at, (int at, const char* path, int flags, ...))
OPENING(openat64, at, (int at, const char* path, int flags, ...))
int creat(const char* path, mode_t bits) {
  return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, bits);
}

// Of std::ofstream, whose writes are write() and writev().
static FILE* stream_of(const char* path, const char* mode) {
  NEXT(FILE*, "fopen64", const char*, const char*);
  struct place place = {-1, 0, ""};
  if (mode[0] == 'w') place = place_of(AT_FDCWD, path);
  if (place.folder < 0) return real(path, mode);
  struct stat status;
  hold();
  count();
  uint64_t before = named(&place);
  FILE* file = real(path, mode);
  if (file && fstat(fileno(file), &status) == 0) {
    struct entry entry = {.parent = place.inode, .inode = status.st_ino};
    put(before ? 'X' : 'C', entry, before ? NULL : place.name, NULL, NULL, 0);
  }
  let_go();
  leave(&place);
  return file;
}
FILE* fopen(const char* path, const char* mode) {
  return stream_of(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return stream_of(path, mode);
}

// ---- bytes

static void put_written(uint64_t inode, uint64_t offset, const struct iovec* parts, size_t written) {
  char* data = malloc(written + 1);
  size_t done = 0;
  for (; done < written; ++parts) {
    size_t part = parts->iov_len < written - done ? parts->iov_len : written - done;
    memcpy(data + done, parts->iov_base, part);
    done += part;
  }
  struct entry entry = {.inode = inode, .offset = offset};
  put('W', entry, NULL, NULL, data, written);
  free(data);
}

// `at` < 0: where the descriptor is.
static ssize_t wrote(int fd, const struct iovec* parts, int number, off_t at, int flags) {
  struct stat status;
  uint64_t inode = inode_of(fd, &status);
  if (inode) {
    hold();
    count();
    fstat(fd, &status);
  }
  off_t begin = at >= 0 ? at : (fcntl(fd, F_GETFL) & O_APPEND) ? status.st_size : lseek(fd, 0, SEEK_CUR);
  ssize_t result =
      at < 0 ? syscall(SYS_writev, fd, parts, number)
             : syscall(SYS_pwritev2, fd, parts, number, (long)at, (long)(sizeof(long) == 8 ? 0 : at >> 31), flags);
  if (!inode) return result;
  if (result > 0) put_written(inode, (uint64_t)begin, parts, (size_t)result);
  let_go();
  return result;
}

ssize_t write(int fd, const void* data, size_t size) {
  NEXT(ssize_t, "write", int, const void*, size_t);
  struct stat status;
  if (!inode_of(fd, &status)) return real(fd, data, size);
  struct iovec part = {(void*)data, size};
  return wrote(fd, &part, 1, -1, 0);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  struct iovec part = {(void*)data, size};
  return wrote(fd, &part, 1, at, 0);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off_t at) {
  return pwrite(fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec* parts, int number) {
  NEXT(ssize_t, "writev", int, const struct iovec*, int);
  struct stat status;
  return inode_of(fd, &status) ? wrote(fd, parts, number, -1, 0) : real(fd, parts, number);
}
ssize_t pwritev(int fd, const struct iovec* parts, int number, off_t at) {
  return wrote(fd, parts, number, at, 0);
}
ssize_t pwritev64(int fd, const struct iovec* parts, int number, off_t at) {
  return wrote(fd, parts, number, at, 0);
}
ssize_t pwritev2(int fd, const struct iovec* parts, int number, off_t at, int flags) {
  return wrote(fd, parts, number, at, flags);
}
ssize_t pwritev64v2(int fd, const struct iovec* parts, int number, off_t at, int flags) {
  return wrote(fd, parts, number, at, flags);
}

// What was copied, read back from where it came from.
static void put_copied(uint64_t inode, off_t offset, int from, off_t at, size_t size) {
  char* data = malloc(size + 1);
  size_t done = 0;
  for (ssize_t got = 1; done < size && got > 0; done += got > 0 ? (size_t)got : 0)
    got = pread(from, data + done, size - done, at + (off_t)done);
  struct entry entry = {.inode = inode, .offset = (uint64_t)offset};
  put(done == size ? 'W' : '?', entry, done == size ? NULL : "a copy that cannot be read back", NULL, data, done);
  free(data);
}

ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* at2, size_t size, unsigned flags) {
  NEXT(ssize_t, "copy_file_range", int, off64_t*, int, off64_t*, size_t, unsigned);
  struct stat status;
  uint64_t inode = inode_of(to, &status);
  if (!inode) return real(from, at, to, at2, size, flags);
  hold();
  count();
  off_t begin = at ? *at : lseek(from, 0, SEEK_CUR), begin2 = at2 ? *at2 : lseek(to, 0, SEEK_CUR);
  ssize_t result = real(from, at, to, at2, size, flags);
  if (result > 0) put_copied(inode, begin2, from, begin, (size_t)result);
  let_go();
  return result;
}
ssize_t sendfile(int to, int from, off_t* at, size_t size) {
  NEXT(ssize_t, "sendfile", int, int, off_t*, size_t);
  struct stat status;
  uint64_t inode = inode_of(to, &status);
  if (!inode) return real(to, from, at, size);
  hold();
  count();
  off_t begin = at ? *at : lseek(from, 0, SEEK_CUR), begin2 = lseek(to, 0, SEEK_CUR);
  ssize_t result = real(to, from, at, size);
  if (result > 0) put_copied(inode, begin2, from, begin, (size_t)result);
  let_go();
  return result;
}
ssize_t sendfile64(int to, int from, off64_t* at, size_t size) {
  return sendfile(to, from, at, size);
}

int ioctl(int fd, unsigned long request, ...) {
  NEXT(int, "ioctl", int, unsigned long, ...);
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  struct stat status;
  uint64_t inode = request == FICLONE ? inode_of(fd, &status) : 0;
  if (!inode) return real(fd, request, argument);
  hold();
  count();
  int result = real(fd, request, argument), from = (int)(intptr_t)argument;
  if (result == 0 && fstat(from, &status) == 0) put_copied(inode, 0, from, 0, (size_t)status.st_size);
  let_go();
  return result;
}

// ---- sizes, syncs

#define BY_FD(kind, call, declared, given, from, bytes, ...)                                      \
  int call declared {                                                                             \
    NEXT(int, #call, __VA_ARGS__);                                                                \
    struct stat status;                                                                           \
    uint64_t inode = inode_of(fd, &status);                                                       \
    if (!inode) return real given;                                                                \
    hold();                                                                                       \
    count();                                                                                      \
    int result = real given;                                                                      \
    struct entry entry = {.inode = inode, .offset = (uint64_t)(from), .size = (uint64_t)(bytes)}; \
    if (result == 0) put(kind, entry, NULL, NULL, NULL, 0);                                       \
    let_go();                                                                                     \
    return result;                                                                                \
  }
// Without a change of the size, or a hole, or room at the end.
#define KIND_OF_ROOM(how)                                        \
  ((how) == 0                                              ? 'A' \
   : (how) == FALLOC_FL_KEEP_SIZE                          ? 'N' \
   : (how) == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) ? 'Z' \
                                                           : '?')

BY_FD('X', ftruncate, (int fd, off_t size), (fd, size), 0, size, int, off_t)
BY_FD('X', ftruncate64, (int fd, off64_t size), (fd, size), 0, size, int, off64_t)
BY_FD(KIND_OF_ROOM(how), fallocate, (int fd, int how, off_t at, off_t size), (fd, how, at, size), at, size, int, int,
      off_t, off_t)
BY_FD(KIND_OF_ROOM(how), fallocate64, (int fd, int how, off64_t at, off64_t size), (fd, how, at, size), at, size, int,
      int, off64_t, off64_t)
BY_FD('A', posix_fallocate, (int fd, off_t at, off_t size), (fd, at, size), at, size, int, off_t, off_t)
BY_FD('F', fsync, (int fd), (fd), 0, S_ISDIR(status.st_mode), int)
BY_FD('F', fdatasync, (int fd), (fd), 0, S_ISDIR(status.st_mode), int)
BY_FD('Y', syncfs, (int fd), (fd), 0, 0, int)

int truncate(const char* path, off_t size) {
  NEXT(int, "truncate", const char*, off_t);
  struct place place = place_of(AT_FDCWD, path);
  if (place.folder < 0) return real(path, size);
  hold();
  count();
  int result = real(path, size);
  struct entry entry = {.inode = named(&place), .size = (uint64_t)size};
  if (result == 0) put('X', entry, NULL, NULL, NULL, 0);
  let_go();
  leave(&place);
  return result;
}
void sync(void) {
  syscall(SYS_sync);
  if (!head || inside) return;
  hold();
  put('Y', (struct entry){0}, NULL, NULL, NULL, 0);
  let_go();
}

// What is written through a mapping cannot be seen: the replay refuses such a record.
static void* mapped(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  void* result = (void*)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
  struct stat status;
  if (fd < 0 || !(flags & MAP_SHARED) || !(protection & PROT_WRITE) || result == MAP_FAILED) return result;
  uint64_t inode = inode_of(fd, &status);
  if (inode) {
    hold();
    put('?', (struct entry){.inode = inode}, "a shared mapping that may be written", NULL, NULL, 0);
    let_go();
  }
  return result;
}
void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  return mapped(at, size, protection, flags, fd, offset);
}
void* mmap64(void* at, size_t size, int protection, int flags, int fd, off64_t offset) {
  return mapped(at, size, protection, flags, fd, offset);
}

// A word of the recording itself: what was promised by then.
void record_note(const char* text) {
  hold();
  put('B', (struct entry){0}, text, NULL, NULL, 0);
  let_go();
}
