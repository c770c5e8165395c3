// FdCache: open files of a store, a bounded number of descriptors or mappings, shared by all its channels.
//
// A pinned descriptor stays open until its Pin dies, however many other files are opened meanwhile. The victim is
// chosen by CLOCK, an approximation of LRU that costs a hit one relaxed load. A channel remembers where it found a file
// (FdHint); a hint is validated, not trusted, so it keeps nothing open, and with it a pin takes no lock. Any thread.
//
// A pin also looks, at most once a second a file, whether the path still leads to what is open, and fails if not. Looks
// are spread: each is followed by a pause, so that many files are looked at more rarely.
#pragma once

#include "core/io/local/open_file.h"
#include "core/io/read.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

namespace penstock {

/// A place in the cache. `pins` counts those who read from it or hold it for their next reads; with kBusy in it, one
/// thread is replacing the file. The other members change only while kBusy is set and may be read only while pinned.
struct FdSlot {
  static constexpr std::uint32_t kBusy = 1U << 31;
  std::atomic<std::uint32_t> pins{0};
  std::atomic<bool> used{false};           // since the clock's hand last passed
  std::atomic<bool> changed{false};        // another file is at its path
  std::atomic<std::int64_t> next_look{0};  // when that is looked at, in nanoseconds of the coarse clock
  OpenFile open;
  std::uint64_t generation = 0;  // of what is in the slot; a hint of an older one is void
  const File* file = nullptr;    // the key; only compared, since its owner may be gone
  File opened;                   // a copy of it, so that another File at the same address is noticed
};

struct FdHint {
  const File* file = nullptr;
  FdSlot* slot = nullptr;
  std::uint64_t generation = 0;
};

/// Keeps a file open; one that found no place in the cache (all of them pinned) is closed at the end.
class FdPin {
 public:
  FdPin(FdSlot* slot, const OpenFile& open) noexcept : slot_(slot), open_(open) {}
  FdPin(FdPin&& other) noexcept : slot_(other.slot_), open_(other.open_) { other.open_ = {}; }
  FdPin(const FdPin&) = delete;
  FdPin& operator=(const FdPin&) = delete;
  FdPin& operator=(FdPin&&) = delete;
  ~FdPin() {
    if (slot_ != nullptr && open_) {
      slot_->pins.fetch_sub(1, std::memory_order_release);
    } else if (open_) {
      close_file(open_);
    }
  }
  [[nodiscard]] int fd() const noexcept { return open_.fd; }
  [[nodiscard]] const OpenFile& open() const noexcept { return open_; }
  /// Whether it counts among the cache's descriptors, whose number is bounded.
  [[nodiscard]] bool cached() const noexcept { return slot_ != nullptr; }

 private:
  FdSlot* slot_;
  OpenFile open_;
};

/// As `max_open_files`, for descriptors: a quarter of their limit. The soft limit is raised to the hard one, as Go and
/// Java do at their start, when a file more than that is wanted: most processes read few files and keep the limit that
/// they were given (docs/decisions.md, "The soft limit of descriptors is raised"). For mappings: see mappings_share().
inline constexpr std::size_t kShareOfLimit = 0;

class FdCache {
 public:
  /// `watches`: files are not to change while they are open.
  FdCache(std::size_t max_open_files, Access access, bool watches = true);
  ~FdCache();
  FdCache(const FdCache&) = delete;
  FdCache& operator=(const FdCache&) = delete;

  /// `file`, opened and checked if it is not in the cache; `hint` is used if it fits and set if not.
  /// Throws NotFound, IoError; Corruption if it is not a regular file of exactly file.bytes; ChangedFile if it was
  /// another one when it was opened first.
  FdPin pin(const File& file, FdHint& hint);
  /// The same if it is in the cache, and need not be looked at; opens nothing.
  std::optional<FdPin> pin_open(const File& file, FdHint& hint);
  /// Closes what is open for Files in this part of memory, but for what is pinned. See ByteStore::forget.
  void forget(std::span<const std::byte> files) noexcept;

  /// Whether the process or the system had no descriptor left, so often asked ago: pins are then to be held one at a
  /// time, for as short as can be.
  [[nodiscard]] bool is_short() noexcept {
    if (short_.load(std::memory_order_relaxed) <= 0) return false;
    short_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  /// Forks that this process descends from, when the cache was made.
  [[nodiscard]] std::uint64_t forks() const noexcept { return forks_; }

 private:
  void set_bound();
  static std::optional<FdPin> pin_hinted(const File& file, const FdHint& hint);
  std::optional<FdPin> pin_found(const File& file, FdHint& hint);  // with mutex_ held
  FdSlot* find(const File& file);
  FdSlot* take_victim();
  FdSlot* take_file_of(std::size_t i, std::span<const std::byte> files);
  void drop_from_table(const FdSlot& slot);
  [[nodiscard]] bool is_due(const FdSlot& slot, std::int64_t now) const noexcept;
  void look(FdSlot& slot, const File& file);
  void remember(const FdSlot& slot) noexcept;
  [[nodiscard]] std::optional<FileStamp> remembered(const File& file);
  void vacate(FdSlot& slot);
  OpenFile open_making_room(const File& file);

  const bool takes_share_;
  const bool watches_;
  bool may_raise_;  // the limit of descriptors; guarded as the slots are
  std::size_t max_open_files_;
  const Access access_;
  const std::uint64_t forks_;
  std::atomic<int> short_{0};
  std::mutex mutex_;  // guards the table, the slots' number, the hand and every setting of kBusy
  std::deque<FdSlot> slots_;
  std::size_t hand_ = 0;
  std::unordered_map<const File*, FdSlot*> table_;
  std::map<const File*, std::pair<File, FileStamp>> evicted_;  // what files were that may be opened again
  std::atomic<std::int64_t> next_look_{0};                     // at any file
};

/// The cache of this process. After fork() the child gets a fresh one and never touches the parent's, whose mutex a
/// thread that does not exist in the child may hold; the parent's is leaked there. Any thread.
class ProcessFdCache {
 public:
  ProcessFdCache(std::size_t max_open_files, Access access, bool watches = true);
  ~ProcessFdCache();
  ProcessFdCache(const ProcessFdCache&) = delete;
  ProcessFdCache& operator=(const ProcessFdCache&) = delete;

  FdCache& current();
  /// See FdCache::forget. In a forked child it leaves the parent's cache alone.
  void forget(std::span<const std::byte> files) noexcept;

 private:
  const std::size_t max_open_files_;
  const Access access_;
  const bool watches_;
  std::atomic<FdCache*> cache_;
};

}  // namespace penstock
