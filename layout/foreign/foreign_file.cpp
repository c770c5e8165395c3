#include "layout/foreign/foreign_file.h"

#include <algorithm>

namespace penstock::layout {
namespace {
constexpr std::uint64_t kFingerprintBytes = 4096;
}  // namespace

ForeignFile::ForeignFile(const Location& location, FileStamp stamp)
    : store_(location.store),
      path_(location.path),
      file_{location.path, store_->size(location.path, Links::Follow), location.store.get(), stamp} {}

void ForeignFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  store_->read_small(path_, offset, out);
}

std::vector<std::byte> ForeignFile::head(std::uint64_t limit) const {
  std::vector<std::byte> result(std::min(limit, file_.bytes));
  read(0, result);
  return result;
}

std::vector<std::byte> ForeignFile::tail(std::uint64_t limit) const {
  std::vector<std::byte> result(std::min(limit, file_.bytes));
  read(file_.bytes - result.size(), result);
  return result;
}

void ForeignFile::add_to(Digest& digest) const {
  digest.update_u64(file_.bytes);
  digest.update(head(kFingerprintBytes));
  digest.update(tail(kFingerprintBytes));
}

}  // namespace penstock::layout
