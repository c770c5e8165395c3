#include "core/fd_cache.h"

#include "core/error.h"
#include "core/fork_count.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

namespace penstock {
namespace {

// Files opened or looked for: long enough that to run out of descriptors again and again costs little.
constexpr int kShortFor = 4096;

int open_retrying(const char* path, bool direct) {
  // O_NONBLOCK: a FIFO in the place of a file must not hang us; it means nothing for regular files. O_NOATIME: the time
  // of access costs each read of the page cache 3 %, and writes; who does not own the file may not ask for it.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOATIME | (direct ? O_DIRECT : 0);
  for (;;) {
    const int fd = ::open(path, flags);
    if (fd >= 0) return fd;
    if (errno == EPERM && (flags & O_NOATIME) != 0) {
      flags &= ~O_NOATIME;
    } else if (errno != EINTR) {
      return fd;
    }
  }
}

[[noreturn]] void refuse_kind(const File& file) {
  raise(ErrorKind::Corruption, "{}: not a regular file", file.path);
}

void check_opened(int fd, const File& file) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) raise_system(errno, "cannot be examined", file.path);
  if (!S_ISREG(status.st_mode)) refuse_kind(file);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes != file.bytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes, the manifest says {}", file.path, with_commas(bytes),
          with_commas(file.bytes));
  }
}

bool holds(const FdSlot& slot, const File& file) {
  return slot.bytes == file.bytes && slot.path == file.path;
}

}  // namespace

void FdPin::close_own() const noexcept {
  ::close(fd_);
}

FdCache::FdCache(std::size_t max_open_files, bool direct)
    : max_open_files_(max_open_files), direct_(direct), forks_(fork_count()) {}

FdCache::~FdCache() {
  for (const FdSlot& slot : slots_) {
    if (slot.fd >= 0) ::close(slot.fd);
  }
}

std::optional<FdPin> FdCache::pin_hinted(const File& file, const FdHint& hint) {
  if (hint.file != &file) return std::nullopt;
  FdSlot& slot = *hint.slot;
  const std::uint32_t before = slot.pins.fetch_add(1, std::memory_order_acquire);
  if ((before & FdSlot::kBusy) == 0 && slot.generation == hint.generation && holds(slot, file)) {
    if (!slot.used.load(std::memory_order_relaxed)) slot.used.store(true, std::memory_order_relaxed);
    return std::optional<FdPin>(std::in_place, &slot, slot.fd);
  }
  slot.pins.fetch_sub(1, std::memory_order_release);
  return std::nullopt;
}

std::optional<FdPin> FdCache::pin_found(const File& file, FdHint& hint) {
  FdSlot* found = find(file);
  if (found == nullptr) return std::nullopt;
  hint = {&file, found, found->generation};
  return std::optional<FdPin>(std::in_place, found, found->fd);
}

std::optional<FdPin> FdCache::pin_open(const File& file, FdHint& hint) {
  if (std::optional<FdPin> pin = pin_hinted(file, hint)) return pin;
  const std::lock_guard lock(mutex_);
  return pin_found(file, hint);
}

FdPin FdCache::pin(const File& file, FdHint& hint) {
  if (std::optional<FdPin> pin = pin_hinted(file, hint)) return std::move(*pin);
  FdSlot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (std::optional<FdPin> pin = pin_found(file, hint)) return std::move(*pin);
    slot = take_victim();
  }
  // Opening may take long on a parallel file system: no lock is held, and what else is cached stays usable.
  if (slot != nullptr) vacate(*slot);
  int fd = -1;
  try {
    fd = open_making_room(file);
    if (slot == nullptr) return {nullptr, fd};
    slot->path = file.path;
  } catch (...) {
    if (fd >= 0) ::close(fd);
    if (slot != nullptr) slot->pins.fetch_sub(FdSlot::kBusy, std::memory_order_release);
    throw;
  }
  slot->fd = fd;
  slot->bytes = file.bytes;
  slot->used.store(false, std::memory_order_relaxed);  // until it is met again: a pass over many files evicts itself
  hint = {&file, slot, slot->generation};
  {
    const std::lock_guard lock(mutex_);
    // If another thread opened the same file meanwhile, the table keeps its slot; ours goes when the hand comes by.
    if (table_.emplace(&file, slot).second) slot->file = &file;
    slot->pins.fetch_sub(FdSlot::kBusy - 1, std::memory_order_release);  // ours alone, but pinned
  }
  return {slot, fd};
}

/// The slot of `file`, pinned; null if there is none. Under the lock no slot of the table is busy.
FdSlot* FdCache::find(const File& file) {
  const auto at = table_.find(&file);
  if (at == table_.end()) return nullptr;
  FdSlot& slot = *at->second;
  slot.pins.fetch_add(1, std::memory_order_acquire);
  if (holds(slot, file)) {
    slot.used.store(true, std::memory_order_relaxed);
    return &slot;
  }
  slot.pins.fetch_sub(1, std::memory_order_release);
  table_.erase(at);  // another File lives at that address now; `slot.file` is stale but no longer in the table
  return nullptr;
}

/// An unused slot, busy and out of the table, its descriptor still open; null if all are pinned. Under the lock.
FdSlot* FdCache::take_victim() {
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
    const auto at = table_.find(slot.file);
    if (at != table_.end() && at->second == &slot) table_.erase(at);
    return &slot;
  }
  return nullptr;
}

/// Empties a busy slot.
void FdCache::vacate(FdSlot& slot) {
  if (slot.fd >= 0) ::close(slot.fd);
  slot.fd = -1;
  slot.file = nullptr;
  slot.path.clear();
  slot.bytes = 0;
  ++slot.generation;
}

/// Opens and checks `file`; where the process has no descriptor left, closes cached ones until it has.
int FdCache::open_making_room(const File& file) {
  int fd = open_retrying(file.path.c_str(), direct_);
  while (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
    const int error = errno;
    short_.store(kShortFor, std::memory_order_relaxed);
    FdSlot* victim = nullptr;
    {
      const std::lock_guard lock(mutex_);
      for (FdSlot& slot : slots_) {
        std::uint32_t unpinned = 0;
        if (!slot.pins.compare_exchange_strong(unpinned, FdSlot::kBusy, std::memory_order_acquire)) continue;
        if (slot.fd >= 0) {
          victim = &slot;
          const auto at = table_.find(slot.file);
          if (at != table_.end() && at->second == &slot) table_.erase(at);
          break;
        }
        slot.pins.fetch_sub(FdSlot::kBusy, std::memory_order_release);
      }
    }
    if (victim == nullptr) raise_system(error, "cannot be opened", file.path);
    vacate(*victim);
    victim->pins.fetch_sub(FdSlot::kBusy, std::memory_order_release);
    fd = open_retrying(file.path.c_str(), direct_);
  }
  if (fd < 0 && errno == EINVAL && direct_) {
    if (!std::filesystem::is_regular_file(file.path)) refuse_kind(file);
    raise_system(EINVAL, "its file system does not read past the page cache; use another reader than \"direct\"",
                 file.path);
  }
  if (fd < 0) raise_system(errno, "cannot be opened", file.path);
  try {
    check_opened(fd, file);
  } catch (...) {
    ::close(fd);
    throw;
  }
  // Windows are read at random: readahead would fetch what nobody asked for. Advice; a refusal changes nothing.
  (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
  return fd;
}

ProcessFdCache::ProcessFdCache(std::size_t max_open_files, bool direct)
    : max_open_files_(max_open_files), direct_(direct), cache_(new FdCache(max_open_files, direct)) {}

ProcessFdCache::~ProcessFdCache() {
  FdCache* cache = cache_.load(std::memory_order_acquire);
  if (cache->forks() == fork_count()) delete cache;
}

FdCache& ProcessFdCache::current() {
  FdCache* cache = cache_.load(std::memory_order_acquire);
  if (cache->forks() == fork_count()) return *cache;
  auto fresh = std::make_unique<FdCache>(max_open_files_, direct_);
  if (cache_.compare_exchange_strong(cache, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *cache;
}

}  // namespace penstock
