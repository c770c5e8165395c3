// io_uring through liburing's functions: reads that fail or are short, submitting and waiting that fail, and
// completions that come backwards. A read that is to fail becomes a NOP, whose completion gets the error's number:
// liburing looks for completions in memory that the kernel and the process share, so they can be changed there.
#include "inject.h"

#if __has_include(<liburing.h>)
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>

// The inline functions of liburing.h call those that are defined here.
#define io_uring_submit declared_submit
#define io_uring_wait_cqe_timeout declared_wait_cqe_timeout
#define io_uring_queue_init declared_queue_init
#include <liburing.h>
#undef io_uring_submit
#undef io_uring_wait_cqe_timeout
#undef io_uring_queue_init

enum { kMostFailed = 64 };
static struct {
  struct io_uring* ring;
  __u64 tag;
  int error;
} failed[kMostFailed];
static int failures;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// liburing is loaded with penstock's own library, where RTLD_NEXT does not look.
static void* of_liburing(const char* name) {
  void* library = dlopen("liburing.so.2", RTLD_NOLOAD | RTLD_LAZY);
  return library ? dlsym(library, name) : NULL;
}

static void make_short(struct io_uring_sqe* entry) {
  if (entry->opcode == IORING_OP_READV && entry->len > 1) {
    entry->len /= 2;
  } else if (entry->opcode == IORING_OP_READ && entry->len > 1) {
    entry->len /= 2;
  }
}

static void make_fail(struct io_uring* ring, struct io_uring_sqe* entry, int error) {
  const __u64 tag = entry->user_data;
  memset(entry, 0, sizeof *entry);
  entry->opcode = IORING_OP_NOP;
  entry->fd = -1;
  entry->user_data = tag;
  pthread_mutex_lock(&mutex);
  if (failures < kMostFailed) {
    failed[failures].ring = ring;
    failed[failures].tag = tag;
    failed[failures++].error = error;
  }
  pthread_mutex_unlock(&mutex);
}

static void look_at_reads(struct io_uring* ring) {
  struct io_uring_sq* queue = &ring->sq;
  for (unsigned i = queue->sqe_head; i != queue->sqe_tail; ++i) {
    struct io_uring_sqe* entry = &queue->sqes[i & *queue->kring_mask];
    if (entry->opcode != IORING_OP_READ && entry->opcode != IORING_OP_READV) continue;
    const int how = step(kRing, "ring read", entry->fd, NULL, 0, NULL);
    if (how == kBeShort) make_short(entry);
    if (how > 0) make_fail(ring, entry, how);
    if (how <= 0 && is_cold()) entry->flags |= IOSQE_ASYNC;  // by a thread of the kernel: it is to be waited for
  }
}

static void swap(struct io_uring_cqe* one, struct io_uring_cqe* two) {
  const struct io_uring_cqe kept = {one->user_data, one->res, one->flags};
  one->user_data = two->user_data, one->res = two->res, one->flags = two->flags;
  two->user_data = kept.user_data, two->res = kept.res, two->flags = kept.flags;
}

static void look_at_completions(struct io_uring* ring) {
  struct io_uring_cq* queue = &ring->cq;
  const unsigned begin = *queue->khead, end = __atomic_load_n(queue->ktail, __ATOMIC_ACQUIRE), mask = *queue->kring_mask;
  pthread_mutex_lock(&mutex);
  for (unsigned i = begin; failures > 0 && i != end; ++i) {
    struct io_uring_cqe* entry = &queue->cqes[i & mask];
    for (int each = 0; each < failures; ++each) {
      if (failed[each].ring != ring || failed[each].tag != entry->user_data || entry->res != 0) continue;
      entry->res = -failed[each].error;
      failed[each] = failed[--failures];
    }
  }
  pthread_mutex_unlock(&mutex);
  if (!is_reversed()) return;
  for (unsigned i = begin, j = end; j - i > 1; ++i) swap(&queue->cqes[i & mask], &queue->cqes[--j & mask]);
}

int io_uring_queue_init(unsigned entries, struct io_uring* ring, unsigned flags) {
  static int (*real)(unsigned, struct io_uring*, unsigned);
  if (!real) *(void**)&real = of_liburing("io_uring_queue_init");
  const int error = step(kSetUp, "ring set-up", kNoFile, "io_uring", 0, NULL);
  return error > 0 ? -error : real(entries, ring, flags);
}
int io_uring_submit(struct io_uring* ring) {
  static int (*real)(struct io_uring*);
  if (!real) *(void**)&real = of_liburing("io_uring_submit");
  if (is_armed()) {
    const int error = step(kSubmit, "ring submit", kNoFile, "io_uring", 0, NULL);
    if (error > 0) return -error;
    look_at_reads(ring);
  }
  const int taken = real(ring);
  look_at_completions(ring);
  return taken;
}
int io_uring_wait_cqe_timeout(struct io_uring* ring, struct io_uring_cqe** entry, struct __kernel_timespec* timeout) {
  static int (*real)(struct io_uring*, struct io_uring_cqe**, struct __kernel_timespec*);
  if (!real) *(void**)&real = of_liburing("io_uring_wait_cqe_timeout");
  const int error = step(kWait, "ring wait", kNoFile, "io_uring", 0, NULL);
  if (error > 0) return -error;
  const int result = real(ring, entry, timeout);
  look_at_completions(ring);
  return result;
}
#endif
