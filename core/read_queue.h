// ReadQueue: reads that a channel has taken and not begun, in order. ChannelFiles: the descriptors that it reads from.
//
// Both belong to one channel and so to one thread.
#pragma once

#include "core/byte_store.h"
#include "core/error.h"
#include "core/fd_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace penstock {

class ReadQueue {
 public:
  /// Throws std::bad_alloc and then has taken none.
  void push(std::span<Read* const> reads) { reads_.insert(reads_.end(), reads.begin(), reads.end()); }
  /// push() of `count` more cannot throw.
  void reserve(std::size_t count) { reads_.reserve(reads_.size() + count); }
  [[nodiscard]] std::size_t size() const noexcept { return reads_.size() - head_; }
  [[nodiscard]] bool empty() const noexcept { return head_ == reads_.size(); }
  /// All of them; valid until the next push or pop.
  [[nodiscard]] std::span<Read* const> front() const noexcept { return std::span(reads_).subspan(head_); }
  void pop(std::size_t count) noexcept {
    head_ += count;
    if (!empty() && head_ < kMostPopped) return;
    reads_.erase(reads_.begin(), reads_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  /// Whether nobody wants any of the reads any more: they end as they are.
  static bool are_cancelled(std::span<Read* const> reads) noexcept {
    return std::all_of(reads.begin(), reads.end(), [](const Read* read) {
      return read->cancelled != nullptr && read->cancelled->load(std::memory_order_relaxed);
    });
  }

 private:
  static constexpr std::size_t kMostPopped = 256;  // a queue that is never empty does not grow for ever

  std::vector<Read*> reads_;
  std::size_t head_ = 0;
};

class ChannelFiles {
 public:
  explicit ChannelFiles(std::shared_ptr<ProcessFdCache> files) : files_(std::move(files)) {}

  /// See FdCache::pin; remembers where it found a file.
  FdPin pin(const File& file) {
    FdCache& cache = current();
    return cache.pin(file, hint(file));
  }

  /// A descriptor for reads that end at once: the pins of the last few files are held until let_go(), since pinning
  /// costs as much as all else that such a read needs besides the kernel. Throws as pin().
  const FdPin& hold(const File& file) {
    if (const FdPin* held = find_held(file)) return *held;
    if (current().is_short()) let_go();  // one at a time
    try {
      return hold(file, pin(file));
    } catch (...) {
      const bool holds = std::any_of(held_.begin(), held_.end(), [](const Held& held) { return held.pin.has_value(); });
      if (!holds || !current().is_short()) throw;
    }
    let_go();  // what is held here may be what is lacking
    return hold(file, pin(file));
  }
  /// The process or the system has no more descriptors.
  static bool lacks_descriptors(const Error& error) noexcept {
    return error.error_number() == EMFILE || error.error_number() == ENFILE;
  }
  /// The pin of a file that is held, for reads that take longer.
  FdPin take(const File& file) {
    for (Held& held : held_) {
      if (held.file != &file || !held.pin) continue;
      FdPin pin = std::move(*held.pin);
      held.pin.reset();
      return pin;
    }
    return pin(file);
  }
  /// The same if the file is open; else null. See FdCache::pin_open.
  const FdPin* hold_open(const File& file) {
    if (const FdPin* held = find_held(file)) return held;
    std::optional<FdPin> pin = current().pin_open(file, hint(file));
    return pin ? &hold(file, std::move(*pin)) : nullptr;
  }
  /// To be called when no read is left: what is pinned keeps its place in the cache.
  void let_go() noexcept {
    for (Held& held : held_) held.pin.reset();
  }

 private:
  static constexpr std::size_t kHints = 256;   // a power of two; 6 KiB a channel
  static constexpr std::size_t kMostHeld = 4;  // the files that one window reads

  struct Held {
    const File* file = nullptr;
    std::optional<FdPin> pin;
  };

  const FdPin* find_held(const File& file) const noexcept {
    for (const Held& held : held_) {
      if (held.file == &file && held.pin) return &*held.pin;
    }
    return nullptr;
  }
  const FdPin& hold(const File& file, FdPin pin) {
    const bool beyond =
        std::any_of(held_.begin(), held_.end(), [](const Held& held) { return held.pin && !held.pin->cached(); });
    if (beyond || !pin.cached()) let_go();  // beyond the cache's bound, one at a time
    Held& held = held_[next_held_++ % kMostHeld];
    held.file = &file;
    held.pin.reset();
    held.pin.emplace(std::move(pin));
    return *held.pin;
  }

  FdCache& current() {
    FdCache& cache = files_->current();
    if (cache.forks() != forks_) {
      hints_.fill({});  // they point into the parent's cache
      forks_ = cache.forks();
    }
    return cache;
  }
  FdHint& hint(const File& file) {
    const auto address = reinterpret_cast<std::uintptr_t>(&file);
    return hints_[(address * 0x9E3779B97F4A7C15U) >> 56];  // Fibonacci hashing to kHints places
  }

  std::shared_ptr<ProcessFdCache> files_;
  std::uint64_t forks_ = 0;  // of the cache that the hints point into
  std::array<FdHint, kHints> hints_{};
  std::array<Held, kMostHeld> held_{};  // by this thread alone, so no fork comes between hold() and let_go()
  std::size_t next_held_ = 0;
};

}  // namespace penstock
