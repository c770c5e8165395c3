// LD_PRELOAD library: counts the calls that reach files below one folder, and lets the k-th fail, be short, or kill.
//
// One control block for all threads and processes of a run: it lies in the file that PENSTOCK_INJECT names, or in
// memory that forked children share. inject_arm() begins counting, inject_disarm() ends it. Calls are logged as
// "<call>\t<path>[\t<second path>]". Reads of io_uring are counted as they are submitted (ring.h).
#include "inject.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { kMostLog = 1 << 22, kMostRefused = 8 };
enum Mode { kCount, kKill, kFail, kShort, kTurn };

static struct Control {
  atomic_int armed;
  int mode, error, turn, cold, reversed;
  unsigned kinds;  // those that are counted, a bit each
  long target;
  atomic_long count, injected;
  atomic_int lasting;  // the errno that all calls of its kinds have from the target on
  char root[1024], what[4200];
  // Calls of these names that fail wherever the path ends so; with `after` only once a dataset.json was renamed.
  char calls[256], end[256];
  int after;
  atomic_int published;
  int refusals;
  struct {
    char call[16];
    int error;
  } refused[kMostRefused];
  atomic_size_t log_size;
  char log_text[kMostLog];
} in_memory, *control = &in_memory;

void* next_of(const char* name) { return dlsym(RTLD_NEXT, name); }

static long system_call(long number, long a, long b, long c, long d, long e, long f) {
  static long (*real)(long, ...);
  if (!real) *(void**)&real = next_of("syscall");
  return real(number, a, b, c, d, e, f);
}

static void* map_control(int fd) {
  const int shared = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
  return (void*)system_call(SYS_mmap, 0, sizeof *control, PROT_READ | PROT_WRITE, shared, fd, 0);
}

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("PENSTOCK_INJECT");
  const int fd = path ? (int)system_call(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CREAT | O_CLOEXEC, 0600, 0, 0) : -1;
  if (fd >= 0) system_call(SYS_ftruncate, fd, sizeof *control, 0, 0, 0, 0);
  void* mapped = map_control(fd);
  if (fd >= 0) system_call(SYS_close, fd, 0, 0, 0, 0, 0);
  control = mapped == MAP_FAILED ? &in_memory : mapped;
}

// What the k-th call may fail with, by its kind: one of these by turns; kBeShort: it does less, or half of it.
static const int kAllowed[kKinds][8] = {
    [kOpen] = {EIO, EMFILE, ENOMEM},
    [kCreate] = {EIO, ENOSPC, EMFILE, EDQUOT, ENOMEM, EROFS},
    [kRead] = {EIO, kBeShort, ENOMEM, EINTR},
    [kWrite] = {EIO, ENOSPC, kBeShort, EDQUOT, EINTR, EROFS},
    [kSync] = {EIO, ENOSPC, EDQUOT, EROFS},
    [kLock] = {EIO, ENOMEM, EINTR},
    [kStat] = {EIO, ENOMEM},
    [kMap] = {ENOMEM, EIO},
    [kList] = {EIO, ENOMEM, EMFILE},
    [kNext] = {EIO},
    [kName] = {EIO, ENOSPC, EDQUOT, ENOMEM, EROFS},
    [kRemove] = {EIO, ENOMEM, EROFS},
    [kRoom] = {EIO, ENOSPC, EDQUOT, EROFS},
    [kCopy] = {EIO, ENOSPC, kBeShort, EDQUOT},
    [kClose] = {EIO, ENOSPC, EDQUOT},
    [kClone] = {EIO, ENOSPC, EOPNOTSUPP},
    [kRing] = {EIO, kBeShort, EAGAIN, EINTR, ENOMEM},
    [kSubmit] = {EAGAIN, EINTR, EBUSY, ENOMEM, EIO},
    [kWait] = {EINTR, EAGAIN, EBUSY, EIO},
    [kSetUp] = {ENOMEM, EMFILE, EPERM},
};

void inject_arm(const char* root, unsigned kinds, int mode, long k, int error_or_turn) {
  atomic_store(&control->armed, 0);
  snprintf(control->root, sizeof control->root, "%s", root);
  control->kinds = kinds;
  control->mode = mode;
  control->target = k;
  control->error = control->turn = error_or_turn;
  control->what[0] = control->log_text[0] = 0;
  atomic_store(&control->count, 0);
  atomic_store(&control->injected, 0);
  atomic_store(&control->lasting, 0);
  atomic_store(&control->published, 0);
  atomic_store(&control->log_size, 0);
  atomic_store(&control->armed, 1);
}
long inject_disarm(void) {
  atomic_store(&control->armed, 0);
  return atomic_load(&control->count);
}
const char* inject_log(void) {
  const size_t size = atomic_load(&control->log_size);
  control->log_text[size < kMostLog ? size : kMostLog - 1] = 0;
  return control->log_text;
}
long inject_times(void) { return atomic_load(&control->injected); }
const char* inject_what(void) { return control->what; }
void inject_refuse(const char* call, int error) {
  snprintf(control->refused[control->refusals].call, sizeof control->refused->call, "%s", call);
  control->refused[control->refusals++].error = error;
}
void inject_allow(void) {
  control->refusals = 0;
  control->calls[0] = 0;
}
void inject_match(const char* calls, const char* end, int after) {
  snprintf(control->calls, sizeof control->calls, " %s ", calls);
  snprintf(control->end, sizeof control->end, "%s", end);
  control->after = after;
}
// `cold`: nothing is in the page cache, as far as preadv2 and io_uring tell; `reversed`: completions come backwards.
void inject_ring(int cold, int reversed) {
  control->cold = cold;
  control->reversed = reversed;
}
int is_armed(void) { return atomic_load_explicit(&control->armed, memory_order_relaxed); }
int is_cold(void) { return is_armed() && control->cold; }
int is_reversed(void) { return is_armed() && control->reversed; }
void was_published(const char* to) {
  const size_t size = strlen(to);
  if (size >= 12 && strcmp(to + size - 12, "dataset.json") == 0) atomic_store(&control->published, 1);
}

static void path_of(int fd, const char* name, char* out, size_t size) {
  out[0] = 0;
  if (fd == kNoFile || (name && name[0] == '/')) {
    snprintf(out, size, "%s", name ? name : "");
    return;
  }
  char link[64];
  snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
  const long n = system_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)out, (long)size - 1, 0, 0);
  out[n < 0 ? 0 : n] = 0;
  if (!name || !name[0]) return;
  const size_t at = strlen(out);
  snprintf(out + at, size - at, "/%s", name);
}

static int is_below(const char* path) {
  const size_t size = strlen(control->root);
  return strncmp(path, control->root, size) == 0 && (size == 0 || path[size] == '/' || path[size] == 0);
}

static void note(const char* call, const char* path, const char* second) {
  char line[8300];
  const char* tab = second[0] ? "\t" : "";
  const int size = snprintf(line, sizeof line, "%s\t%s%s%s\n", call, path, tab, second);
  const size_t at = atomic_fetch_add(&control->log_size, (size_t)size);
  if (at + (size_t)size < kMostLog) memcpy(control->log_text + at, line, (size_t)size);
}

static int inject(int error, const char* call, const char* path) {
  if (atomic_fetch_add(&control->injected, 1) == 0)
    snprintf(control->what, sizeof control->what, "%s\t%d\t%.4000s", call, error, path);
  if (error > 0) errno = error;
  return error;
}

// A full disk stays full, and one that may not be written to stays so.
static int lasts(enum Kind kind) {
  const unsigned takes_room = 1U << kCreate | 1U << kWrite | 1U << kRoom | 1U << kCopy;
  const unsigned changes = takes_room | 1U << kName | 1U << kRemove | 1U << kSync;
  const int error = atomic_load(&control->lasting);
  return error != 0 && ((error == EROFS ? changes : takes_room) >> kind & 1U) ? error : 0;
}

static int choose(enum Kind kind, const char* call, const char* path, long n) {
  if (control->mode == kKill && n == control->target) system_call(SYS_exit_group, 77, 0, 0, 0, 0, 0);
  if (control->mode == kFail && n == control->target) return inject(control->error, call, path);
  if (control->mode == kTurn && n == control->target) {
    int count = 0;
    while (kAllowed[kind][count] != 0) ++count;
    const int error = kAllowed[kind][control->turn % count];
    if (error == ENOSPC || error == EDQUOT || error == EROFS) atomic_store(&control->lasting, error);
    return inject(error, call, path);
  }
  const int error = control->mode == kTurn && n > control->target ? lasts(kind) : 0;
  if (error != 0) return inject(error, call, path);
  if (control->mode == kShort && kind == kWrite) return n % 3 == 0 ? inject(EINTR, call, path) : kBeShort;
  if (control->mode == kShort && kind == kCopy) return n % 2 == 0 ? inject(EXDEV, call, path) : kBeShort;
  return 0;
}

static int is_matched(const char* call, const char* path) {
  char padded[40];
  if (!control->calls[0] || (control->after && !atomic_load(&control->published))) return 0;
  snprintf(padded, sizeof padded, " %s ", call);
  const size_t size = strlen(path), end = strlen(control->end);
  return strstr(control->calls, padded) && size >= end && strcmp(path + size - end, control->end) == 0;
}

int step(enum Kind kind, const char* call, int fd, const char* name, int fd2, const char* name2) {
  if (!is_armed() || !(control->kinds >> kind & 1U)) return 0;
  const int before = errno;
  char path[4096], second[4096] = "";
  path_of(fd, name, path, sizeof path);
  if (name2) path_of(fd2, name2, second, sizeof second);
  errno = before;
  if (fd != kNoFile && !is_below(path) && !(name2 && is_below(second))) return 0;
  const long n = atomic_fetch_add(&control->count, 1) + 1;
  note(call, path, second);
  for (int i = 0; i < control->refusals; ++i) {
    if (strcmp(control->refused[i].call, call) == 0) return inject(control->refused[i].error, call, path);
  }
  if (is_matched(call, path)) return inject(EIO, call, path);
  return choose(kind, call, path, n);
}
