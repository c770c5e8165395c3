#include "core/io/local/local_store.h"

#include "core/base/error.h"
#include "core/io/local/direct_read.h"
#include "core/io/local/fd_cache.h"
#include "core/io/local/links.h"
#include "core/io/local/local_files.h"
#include "core/io/local/mapped_channel.h"
#include "core/io/local/pread_channel.h"
#include "core/io/local/ring.h"
#include "core/io/local/uring_channel.h"

#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

namespace penstock {
namespace {

/// Measured: two warm reads of 4 KiB take 1.3 µs, one that also reads 16 KiB between them 2.9. Cold, a read saved is
/// some 80 µs: devices are bound by operations at these sizes.
constexpr std::uint64_t kNearLocalBytes = 16 << 10;

constexpr std::uint64_t kBulkOfLocalReads = 32;

/// Mappings would take it all, and the next allocation would end the process.
void refuse_bounded_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  raise(ErrorKind::InvalidArgument,
        "reader=\"mmap\": the address space of this process is bounded to {} bytes (ulimit -v); use \"auto\"",
        with_commas(limit.rlim_cur));
}

bool passes(int error) {
  return error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN || error == ETIMEDOUT;
}

}  // namespace

// What stores of the same files share.
struct LocalStore::Files {
  explicit Files(std::size_t max_open_files, bool watches = true)
      : buffered(std::make_shared<ProcessFdCache>(max_open_files, Access::Buffered, watches)),
        direct(std::make_shared<ProcessFdCache>(max_open_files, Access::Direct, watches)),
        mapped(std::make_shared<ProcessFdCache>(max_open_files, Access::Mapped, watches)),
        changing(watches ? std::make_shared<Files>(max_open_files, false) : nullptr) {}

  // The errno for which there can be no ring, 0 if there can. Tried once; who `asks_again` learns whether a want of
  // memory or of a descriptor is over. Without a lock, which a fork might leave held.
  int ring_refusal(bool asks_again) {
    const int known = refusal_.load(std::memory_order_relaxed);
    if (known != kNotTried && !(asks_again && passes(known))) return known;
    const int found = Ring::refusal();
    refusal_.store(found, std::memory_order_relaxed);
    return found;
  }

  const std::shared_ptr<ProcessFdCache> buffered;
  const std::shared_ptr<ProcessFdCache> direct;
  const std::shared_ptr<ProcessFdCache> mapped;
  const std::shared_ptr<Files> changing;  // those that are written while they are read; null of these

 private:
  static constexpr int kNotTried = -1;
  std::atomic<int> refusal_{kNotTried};
};

LocalStore::LocalStore(std::size_t max_open_files)
    : LocalStore(std::make_shared<Files>(max_open_files), Reader::Auto) {}

std::shared_ptr<LocalStore> LocalStore::of_changing_files() const {
  return std::shared_ptr<LocalStore>(new LocalStore(files_->changing ? files_->changing : files_, reader_));
}

std::shared_ptr<ByteStore> LocalStore::reading_by(Reader reader) const {
  return std::shared_ptr<LocalStore>(new LocalStore(files_, reader));
}

std::shared_ptr<ByteStore> LocalStore::reading_once(std::uint64_t reads) const {
  return reading_by(reads < kBulkOfLocalReads ? Reader::Pread : Reader::Auto);
}

Reader LocalStore::resolve() const {
  if (reader_ == Reader::Pread) return reader_;
  if (reader_ == Reader::Mmap) {
    refuse_bounded_address_space();
    return reader_;
  }
  const int refusal = files_->ring_refusal(reader_ != Reader::Auto);
  if (refusal == 0) return reader_ == Reader::Auto ? Reader::Uring : reader_;
  if (reader_ == Reader::Auto) return Reader::Pread;
  const char* const reader = reader_ == Reader::Uring ? "uring" : "direct";
  if (passes(refusal)) raise_system(refusal, fmt::format("there is none now for reader=\"{}\"", reader), "io_uring");
  raise(ErrorKind::InvalidArgument, "reader=\"{}\": io_uring is refused here ({}); use \"pread\" or \"auto\"", reader,
        std::generic_category().message(refusal));
}

std::unique_ptr<Channel> LocalStore::open_channel(ChannelMode mode) {
  if (mode == ChannelMode::NonBlocking) {
    if (reader_ == Reader::Direct) return nullptr;  // it does not look into the page cache
    if (reader_ == Reader::Mmap) return std::make_unique<MappedChannel>(files_->mapped, mode);
    return std::make_unique<PreadChannel>(files_->buffered, mode);
  }
  switch (resolve()) {
    case Reader::Direct: return std::make_unique<UringChannel>(files_->direct, true);
    case Reader::Mmap: return std::make_unique<MappedChannel>(files_->mapped, mode);
    case Reader::Pread: return std::make_unique<PreadChannel>(files_->buffered, mode);
    case Reader::Auto:
    case Reader::Uring: break;
  }
  try {
    return std::make_unique<UringChannel>(files_->buffered, false);
  } catch (const Error&) {
    if (reader_ != Reader::Auto) throw;
    return std::make_unique<PreadChannel>(files_->buffered, mode);  // no descriptor or locked memory for another ring
  }
}

std::uint64_t LocalStore::size(const std::string& path, Links links) {
  return local_size(path, links);
}

std::string LocalStore::resolve(const std::string& path) {
  return resolve_links(path);
}

void LocalStore::read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) {
  read_local(path, offset, out);
}

std::vector<std::string> LocalStore::list(const std::string& path) {
  return list_local(path);
}

void LocalStore::forget(std::span<const std::byte> files) noexcept {
  for (const auto& cache : {files_->buffered, files_->direct, files_->mapped}) cache->forget(files);
}

std::size_t LocalStore::reads_in_flight() {
  const Reader reader = resolve();
  return reader == Reader::Uring || reader == Reader::Direct ? UringChannel::kDepth : 1;
}

std::uint64_t LocalStore::near_bytes() const {
  return reader_ == Reader::Mmap ? 0 : kNearLocalBytes;  // mappings need no system call that merging could save
}

std::uint64_t LocalStore::block_bytes() const {
  return reader_ == Reader::Direct ? DirectRead::kAlign : 1;
}

std::string LocalStore::name() {
  switch (resolve()) {
    case Reader::Uring: return "uring";
    case Reader::Direct: return "direct";
    case Reader::Mmap: return "mmap";
    default: return "pread";
  }
}

}  // namespace penstock
