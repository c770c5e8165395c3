// Shared by the parts of the library that LD_PRELOAD takes: the kinds of calls, and the question put before each.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

enum Kind {
  kOpen,
  kCreate,
  kRead,
  kWrite,
  kSync,
  kLock,
  kStat,
  kMap,
  kList,
  kNext,  // of a folder's names
  kName,
  kRemove,
  kRoom,
  kCopy,
  kClose,
  kClone,
  kRing,  // a read of io_uring
  kSubmit,
  kWait,
  kSetUp,
  kKinds
};
enum { kBeShort = -1, kNoFile = -1000 };  // kNoFile: a call that is about no file counts wherever the run's folder is

// 0: the call is made; kBeShort: with less; else it fails with that error, which is in errno.
int step(enum Kind kind, const char* call, int fd, const char* name, int fd2, const char* name2);
int is_armed(void);
int is_cold(void);
int is_reversed(void);
void was_published(const char* to);
void* next_of(const char* name);

#define NEXT(result, name, ...)       \
  static result (*real)(__VA_ARGS__); \
  if (!real) *(void**)&real = next_of(name)
