#include "tests/native/layout/failing_allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace penstock::testing {
namespace {

thread_local bool counts_here = true;
std::atomic<bool> armed{false};
std::atomic<bool> all_following{false};
std::atomic<std::uint64_t> until_failure{0};
std::atomic<std::uint64_t> failed{0};
std::atomic<std::int64_t> in_use{0};
std::atomic<std::uint64_t> blocks{0};
std::atomic<std::uint64_t> bytes{0};

bool fails() noexcept {
  if (!armed.load(std::memory_order_acquire) || !counts_here) return false;
  std::uint64_t left = until_failure.load();
  while (left > 0 && !until_failure.compare_exchange_weak(left, left - 1)) {
  }
  if (left > 1 || (left == 0 && !all_following)) return false;
  ++failed;
  errno = ENOMEM;
  return true;
}

void* counted(void* memory, std::size_t size) noexcept {
  if (memory == nullptr) return memory;
  ++in_use;
  ++blocks;
  bytes += size;
  return memory;
}

}  // namespace

void count_allocations_here(bool counts) noexcept {
  counts_here = counts;
}

void fail_allocations(std::uint64_t first, bool following) noexcept {
  failed = 0;
  until_failure = first;
  all_following = following;
  armed.store(true, std::memory_order_release);
}

void stop_failing_allocations() noexcept {
  armed = false;
}

std::uint64_t failed_allocations() noexcept {
  return failed;
}

std::int64_t blocks_in_use() noexcept {
  return in_use;
}

Allocated allocated() noexcept {
  return {blocks, bytes};
}

}  // namespace penstock::testing

using penstock::testing::counted;
using penstock::testing::fails;
using penstock::testing::in_use;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = fails() ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return counted(memory, size);
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return fails() ? nullptr : counted(std::malloc(size), size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr) --in_use;
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  operator delete(memory);
}

#else

// glibc's own; what it allocates itself, it asks of those below.
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t size);            // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT(bugprone-reserved-identifier)
void __libc_free(void* memory);                                  // NOLINT(bugprone-reserved-identifier)

void* malloc(std::size_t size) {
  return fails() ? nullptr : counted(__libc_malloc(size), size);
}
void* calloc(std::size_t count, std::size_t size) {
  return fails() ? nullptr : counted(__libc_calloc(count, size), count * size);
}
void* realloc(void* memory, std::size_t size) {
  if (fails()) return nullptr;
  void* const moved = __libc_realloc(memory, size);
  if (memory == nullptr) return counted(moved, size);
  if (size == 0) --in_use;
  return moved;
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails() ? nullptr : counted(__libc_memalign(alignment, size), size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  return aligned_alloc(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  void* const memory = aligned_alloc(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
void free(void* memory) {
  if (memory != nullptr) --in_use;
  __libc_free(memory);
}
}

#endif
