#include "core/io/local/fd_cache.h"

#include "core/base/error.h"
#include "core/base/fork_count.h"
#include "core/io/changed_file.h"
#include "core/io/local/descriptor_limit.h"
#include "core/io/local/mapping_limit.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <new>
#include <utility>

namespace penstock {
namespace {

// Files opened or looked for: long enough that to run out of descriptors again and again costs little.
constexpr int kShortFor = 4096;

constexpr std::int64_t kBetweenLooksNs = 1'000'000'000;
constexpr std::int64_t kLooksShare = 200;  // a look at any file is followed by so many times what it took without …
constexpr std::int64_t kMostPauseNs = 20'000'000;  // … or by this: a busy machine makes looks seem long

// Within some milliseconds, for a few nanoseconds.
std::int64_t coarse_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace

FdCache::FdCache(std::size_t max_open_files, Access access, bool watches)
    : takes_share_(max_open_files == kShareOfLimit),
      watches_(watches),
      may_raise_(takes_share_ && access != Access::Mapped),
      max_open_files_(max_open_files),
      access_(access),
      forks_(fork_count()) {}

FdCache::~FdCache() {
  for (const FdSlot& slot : slots_) close_file(slot.open);
}

std::optional<FdPin> FdCache::pin_hinted(const File& file, const FdHint& hint) {
  if (hint.file != &file) return std::nullopt;
  FdSlot& slot = *hint.slot;
  const std::uint32_t before = slot.pins.fetch_add(1, std::memory_order_acquire);
  if ((before & FdSlot::kBusy) == 0 && slot.generation == hint.generation && slot.opened == file) {
    if (!slot.used.load(std::memory_order_relaxed)) slot.used.store(true, std::memory_order_relaxed);
    return std::optional<FdPin>(std::in_place, &slot, slot.open);
  }
  slot.pins.fetch_sub(1, std::memory_order_release);
  return std::nullopt;
}

std::optional<FdPin> FdCache::pin_found(const File& file, FdHint& hint) {
  FdSlot* found = find(file);
  if (found == nullptr) return std::nullopt;
  hint = {&file, found, found->generation};
  return std::optional<FdPin>(std::in_place, found, found->open);
}

std::optional<FdPin> FdCache::pin_open(const File& file, FdHint& hint) {
  std::optional<FdPin> pin = [&] {
    std::optional<FdPin> hinted = pin_hinted(file, hint);
    if (hinted) return hinted;
    const std::lock_guard lock(mutex_);
    return pin_found(file, hint);
  }();
  // Looking may take long on a network file system: that is for those who may wait.
  if (pin && watches_ && (hint.slot->changed.load(std::memory_order_relaxed) || is_due(*hint.slot, coarse_now()))) {
    pin.reset();
  }
  return pin;
}

FdPin FdCache::pin(const File& file, FdHint& hint) {
  if (std::optional<FdPin> pin = pin_hinted(file, hint)) {
    look(*hint.slot, file);
    return std::move(*pin);
  }
  FdSlot* slot = nullptr;
  std::optional<FileStamp> before;
  std::optional<FdPin> found = [&]() -> std::optional<FdPin> {
    const std::lock_guard lock(mutex_);
    if (std::optional<FdPin> pin = pin_found(file, hint)) return pin;
    slot = take_victim();
    before = remembered(file);
    return std::nullopt;
  }();
  if (found) {
    look(*hint.slot, file);
    return std::move(*found);
  }
  // Opening may take long on a parallel file system: no lock is held, and what else is cached stays usable.
  if (slot != nullptr) vacate(*slot);
  OpenFile open;
  try {
    open = open_making_room(file);
    if (before && *before != open.stamp) throw ChangedFile(file.path());
    if (slot == nullptr) return {nullptr, open};
  } catch (...) {
    close_file(open);
    if (slot != nullptr) slot->pins.fetch_sub(FdSlot::kBusy, std::memory_order_release);
    throw;
  }
  slot->open = open;
  slot->opened = file;
  slot->used.store(false, std::memory_order_relaxed);  // until it is met again: a pass over many files evicts itself
  slot->changed.store(false, std::memory_order_relaxed);
  slot->next_look.store(coarse_now() + kBetweenLooksNs, std::memory_order_relaxed);
  hint = {&file, slot, slot->generation};
  {
    const std::lock_guard lock(mutex_);
    // If another thread opened the same file meanwhile, the table keeps its slot; ours goes when the hand comes by. So
    // it does where there is no memory for the table.
    try {
      table_.emplace(&file, slot);
    } catch (const std::bad_alloc&) {
    }
    slot->file = &file;
    slot->pins.fetch_sub(FdSlot::kBusy - 1, std::memory_order_release);  // ours alone, but pinned
  }
  return {slot, open};
}

bool FdCache::is_due(const FdSlot& slot, std::int64_t now) const noexcept {
  return now >= slot.next_look.load(std::memory_order_relaxed) && now >= next_look_.load(std::memory_order_relaxed);
}

/// Of a pinned slot.
void FdCache::look(FdSlot& slot, const File& file) {
  if (!watches_) return;
  if (slot.changed.load(std::memory_order_relaxed)) throw ChangedFile(file.path());
  const std::int64_t now = coarse_now();
  if (!is_due(slot, now)) return;
  std::int64_t due = slot.next_look.load(std::memory_order_relaxed);
  if (!slot.next_look.compare_exchange_strong(due, now + kBetweenLooksNs, std::memory_order_relaxed)) return;
  const auto began = std::chrono::steady_clock::now();
  const bool changed = is_another(file, slot.open.stamp);
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
  next_look_.store(now + std::min<std::int64_t>(kLooksShare * took.count(), kMostPauseNs), std::memory_order_relaxed);
  if (!changed) return;
  slot.changed.store(true, std::memory_order_relaxed);
  throw ChangedFile(file.path());
}

/// Of a busy slot that is evicted, so that what is opened again is the same file. Under the lock.
void FdCache::remember(const FdSlot& slot) noexcept {
  if (!watches_ || slot.file == nullptr || !slot.open) return;
  try {
    evicted_.insert_or_assign(slot.file, std::pair(slot.opened, slot.open.stamp));
  } catch (const std::bad_alloc&) {  // then it is not known
  }
}

/// Under the lock.
std::optional<FileStamp> FdCache::remembered(const File& file) {
  const auto at = evicted_.find(&file);
  if (at == evicted_.end()) return std::nullopt;
  if (at->second.first == file) return at->second.second;
  evicted_.erase(at);  // another File lives at that address now
  return std::nullopt;
}

/// The slot of `file`, pinned; null if there is none. Under the lock no slot of the table is busy.
FdSlot* FdCache::find(const File& file) {
  const auto at = table_.find(&file);
  if (at == table_.end()) return nullptr;
  FdSlot& slot = *at->second;
  slot.pins.fetch_add(1, std::memory_order_acquire);
  if (slot.opened == file) {
    slot.used.store(true, std::memory_order_relaxed);
    return &slot;
  }
  slot.pins.fetch_sub(1, std::memory_order_release);
  table_.erase(at);  // another File lives at that address now; `slot.file` is stale but no longer in the table
  return nullptr;
}

/// Before a file more is opened, under the lock. The share is taken with the first file, not when the cache is made: a
/// store lives as long as the process, whose limit may be set meanwhile.
void FdCache::set_bound() {
  if (takes_share_ && slots_.empty()) {
    max_open_files_ = access_ == Access::Mapped ? mappings_share() : open_files_share();
  }
  if (slots_.size() == max_open_files_ && may_raise_) {
    may_raise_ = false;
    raise_descriptor_limit();
    max_open_files_ = std::max(max_open_files_, open_files_share());
  }
}

/// An unused slot, busy and out of the table, its descriptor still open; null if all are pinned. Under the lock.
FdSlot* FdCache::take_victim() {
  set_bound();
  if (slots_.size() < max_open_files_) {
    FdSlot& slot = slots_.emplace_back();
    slot.pins.store(FdSlot::kBusy, std::memory_order_relaxed);
    return &slot;
  }
  for (std::size_t step = 0; step < 2 * slots_.size(); ++step) {
    FdSlot& slot = slots_[hand_];
    hand_ = hand_ + 1 == slots_.size() ? 0 : hand_ + 1;
    if (slot.pins.load(std::memory_order_relaxed) != 0) continue;
    if (slot.used.exchange(false, std::memory_order_relaxed)) continue;  // a second chance
    std::uint32_t unpinned = 0;
    if (!slot.pins.compare_exchange_strong(unpinned, FdSlot::kBusy, std::memory_order_acquire)) continue;
    drop_from_table(slot);
    remember(slot);
    return &slot;
  }
  return nullptr;
}

/// Of a busy slot. Under the lock.
void FdCache::drop_from_table(const FdSlot& slot) {
  const auto at = table_.find(slot.file);
  if (at != table_.end() && at->second == &slot) table_.erase(at);
}

/// The i-th slot, busy and out of the table, if its file is one of these and it is not pinned. Under the lock.
FdSlot* FdCache::take_file_of(std::size_t i, std::span<const std::byte> files) {
  FdSlot& slot = slots_[i];
  std::uint32_t unpinned = 0;
  if (!slot.pins.compare_exchange_strong(unpinned, FdSlot::kBusy, std::memory_order_acquire)) return nullptr;
  const auto at = reinterpret_cast<std::uintptr_t>(slot.file);
  const auto begin = reinterpret_cast<std::uintptr_t>(files.data());
  if (at >= begin && at - begin < files.size()) {
    drop_from_table(slot);
    return &slot;
  }
  slot.pins.fetch_sub(FdSlot::kBusy, std::memory_order_release);
  return nullptr;
}

void FdCache::forget(std::span<const std::byte> files) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto* const begin = reinterpret_cast<const File*>(files.data());
    evicted_.erase(evicted_.lower_bound(begin),
                   evicted_.lower_bound(reinterpret_cast<const File*>(files.data() + files.size())));
  }
  for (std::size_t i = 0;; ++i) {
    FdSlot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (i >= slots_.size()) return;
      slot = take_file_of(i, files);
    }
    if (slot == nullptr) continue;
    vacate(*slot);  // without the lock: closing may take long on a network file system
    slot->pins.fetch_sub(FdSlot::kBusy, std::memory_order_release);
  }
}

/// Empties a busy slot.
void FdCache::vacate(FdSlot& slot) {
  close_file(slot.open);
  slot.open = {};
  slot.file = nullptr;
  slot.opened = {};
  ++slot.generation;
}

/// Opens and checks `file`; where the process has no room for it, closes cached ones until it has.
OpenFile FdCache::open_making_room(const File& file) {
  OpenFile open = open_file(file, access_);
  while (!open) {
    const int error = errno;
    short_.store(kShortFor, std::memory_order_relaxed);
    FdSlot* victim = nullptr;
    {
      const std::lock_guard lock(mutex_);
      for (FdSlot& slot : slots_) {
        std::uint32_t unpinned = 0;
        if (!slot.pins.compare_exchange_strong(unpinned, FdSlot::kBusy, std::memory_order_acquire)) continue;
        if (slot.open) {
          victim = &slot;
          drop_from_table(slot);
          remember(slot);
          break;
        }
        slot.pins.fetch_sub(FdSlot::kBusy, std::memory_order_release);
      }
    }
    if (victim == nullptr) {
      const char* const what = error == ENOMEM
                                   ? "no room to map it (see vm.max_map_count); use another reader than \"mmap\""
                                   : "cannot be opened";
      raise_system(error, what, file.path());
    }
    vacate(*victim);
    victim->pins.fetch_sub(FdSlot::kBusy, std::memory_order_release);
    open = open_file(file, access_);
  }
  return open;
}

ProcessFdCache::ProcessFdCache(std::size_t max_open_files, Access access, bool watches)
    : max_open_files_(max_open_files),
      access_(access),
      watches_(watches),
      cache_(new FdCache(max_open_files, access, watches)) {}

ProcessFdCache::~ProcessFdCache() {
  FdCache* cache = cache_.load(std::memory_order_acquire);
  if (cache->forks() == fork_count()) delete cache;
}

void ProcessFdCache::forget(std::span<const std::byte> files) noexcept {
  FdCache* cache = cache_.load(std::memory_order_acquire);
  if (cache->forks() == fork_count()) cache->forget(files);
}

FdCache& ProcessFdCache::current() {
  FdCache* cache = cache_.load(std::memory_order_acquire);
  if (cache->forks() == fork_count()) return *cache;
  auto fresh = std::make_unique<FdCache>(max_open_files_, access_, watches_);
  if (cache_.compare_exchange_strong(cache, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *cache;
}

}  // namespace penstock
