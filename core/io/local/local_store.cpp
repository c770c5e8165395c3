#include "core/io/local/local_store.h"

#include "core/base/error.h"
#include "core/io/local/cached_channel.h"
#include "core/io/local/fd_cache.h"
#include "core/io/local/mapped_channel.h"
#include "core/io/local/pread_channel.h"
#include "core/io/local/ring.h"
#include "core/io/local/uring_channel.h"

#include <sys/resource.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace penstock {
namespace {

/// An eighth of what the kernel allows a process by default (vm.max_map_count, 65,530): there may be other stores.
constexpr std::size_t kDefaultMaxMappings = 8192;

/// Mappings would take it all, and whoever asks for memory next would end the process.
void refuse_bounded_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  raise(ErrorKind::InvalidArgument,
        "reader=\"mmap\": the address space of this process is bounded to {} bytes (ulimit -v); use \"auto\"",
        with_commas(limit.rlim_cur));
}

class LocalStore final : public ByteStore {
 public:
  LocalStore(std::size_t max_open_files, std::size_t max_mappings)
      : files_(std::make_shared<ProcessFdCache>(max_open_files, Access::Buffered)),
        direct_files_(std::make_shared<ProcessFdCache>(max_open_files, Access::Direct)),
        mapped_files_(std::make_shared<ProcessFdCache>(max_mappings, Access::Mapped)) {}

  std::unique_ptr<Channel> open_channel(Reader reader) override {
    const Reader resolved = resolve(reader);
    if (resolved == Reader::Direct) return std::make_unique<UringChannel>(direct_files_, true);
    if (resolved == Reader::Pread) return std::make_unique<PreadChannel>(files_);
    if (resolved == Reader::Mmap) return std::make_unique<MappedChannel>(mapped_files_);
    try {
      return std::make_unique<UringChannel>(files_, false);
    } catch (const Error&) {
      if (reader != Reader::Auto) throw;
      return std::make_unique<PreadChannel>(files_);  // no descriptor or locked memory is left for another ring
    }
  }

  std::unique_ptr<Channel> open_cached_channel(Reader reader) override {
    if (reader == Reader::Direct) return std::make_unique<NothingCached>();  // the page cache is not to be asked
    if (reader == Reader::Mmap) return std::make_unique<CachedMappedChannel>(mapped_files_);
    return std::make_unique<CachedChannel>(files_);
  }

  [[nodiscard]] std::string reader_name(Reader reader) override {
    switch (resolve(reader)) {
      case Reader::Uring: return "uring";
      case Reader::Direct: return "direct";
      case Reader::Mmap: return "mmap";
      default: return "pread";
    }
  }

 private:
  Reader resolve(Reader reader) {
    if (reader == Reader::Pread) return reader;
    if (reader == Reader::Mmap) {
      refuse_bounded_address_space();
      return reader;
    }
    std::call_once(tried_, [this] { refusal_ = Ring::refusal(); });
    if (!refusal_) return reader == Reader::Auto ? Reader::Uring : reader;
    if (reader == Reader::Auto) return Reader::Pread;
    raise(ErrorKind::InvalidArgument, "reader=\"{}\": io_uring is refused here ({}); use \"pread\" or \"auto\"",
          reader == Reader::Uring ? "uring" : "direct", *refusal_);
  }

  std::shared_ptr<ProcessFdCache> files_;
  std::shared_ptr<ProcessFdCache> direct_files_;
  std::shared_ptr<ProcessFdCache> mapped_files_;
  std::once_flag tried_;
  std::optional<std::string> refusal_;
};

}  // namespace

std::shared_ptr<ByteStore> make_local_store(std::size_t max_open_files) {
  if (max_open_files == 0) return std::make_shared<LocalStore>(kShareOfLimit, kDefaultMaxMappings);
  return std::make_shared<LocalStore>(max_open_files, max_open_files);
}

}  // namespace penstock
