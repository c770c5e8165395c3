// ChannelFiles: the descriptors that a channel reads from. Of one channel and so of one thread.
#pragma once

#include "core/base/error.h"
#include "core/io/local/fd_cache.h"
#include "core/io/read.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace penstock {

class ChannelFiles {
 public:
  explicit ChannelFiles(std::shared_ptr<ProcessFdCache> files) : files_(std::move(files)) {}

  /// See FdCache::pin; remembers where it found a file.
  FdPin pin(const File& file) {
    FdCache& cache = current();
    return cache.pin(file, hint(file));
  }

  /// A descriptor for reads that end at once: the pins of the last few files are held until let_go(), since pinning
  /// costs as much as all else that such a read needs besides the kernel. Throws as pin(); where descriptors are short
  /// only after it gave back those that are held here and, if `patient`, waited a little for those of other threads.
  const FdPin& hold(const File& file, bool patient = true);
  /// See FdCache::is_short.
  [[nodiscard]] bool is_short() { return current().is_short(); }
  /// The process or the system has no more descriptors, or no room for another mapping.
  static bool lacks_room(const Error& error) noexcept {
    return error.error_number() == EMFILE || error.error_number() == ENFILE || error.error_number() == ENOMEM;
  }
  /// A pin for reads that take longer: that which is held, if the file's is.
  FdPin take(const File& file) {
    for (Held& held : held_) {
      if (held.file != &file || !held.pin) continue;
      FdPin pin = std::move(*held.pin);
      held.pin.reset();
      return pin;
    }
    return pin(file);
  }
  /// As hold() if the file is open; else null. See FdCache::pin_open.
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
  static constexpr std::size_t kHints = 256;    // a power of two; 6 KiB a channel
  static constexpr std::size_t kMostHeld = 4;   // the files that one window reads
  static constexpr unsigned kLetGoEvery = 256;  // uses of what is held: the cache looks at files that are pinned anew

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
  const FdPin& hold(const File& file, FdPin pin);

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
  unsigned uses_ = 0;  // of what is held
};

}  // namespace penstock
