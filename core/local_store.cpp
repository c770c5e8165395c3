#include "core/local_store.h"

#include "core/fd_cache.h"
#include "core/pread_channel.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace penstock {
namespace {

/// Half of what the process may open: the rest is the training job's. More than 4,096 would gain nothing: that is every
/// file of 1,000 shards.
std::size_t default_max_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 16;
  return static_cast<std::size_t>(std::clamp<rlim_t>(limit.rlim_cur / 2, 1, 4096));
}

class LocalStore final : public ByteStore {
 public:
  explicit LocalStore(std::size_t max_open_files) : files_(std::make_shared<ProcessFdCache>(max_open_files)) {}
  std::unique_ptr<Channel> open_channel() override { return std::make_unique<PreadChannel>(files_); }

 private:
  std::shared_ptr<ProcessFdCache> files_;
};

}  // namespace

std::shared_ptr<ByteStore> make_local_store(std::size_t max_open_files) {
  return std::make_shared<LocalStore>(max_open_files == 0 ? default_max_open_files() : max_open_files);
}

}  // namespace penstock
