#include "writer/files/checked_input.h"

#include "core/base/crc32c.h"
#include "layout/dataset/format.h"

namespace penstock::writer {
namespace {

using layout::kCrcBlockBytes;

constexpr std::uint64_t kCheckedBytes = 1U << 20;
static_assert(kCheckedBytes % kCrcBlockBytes == 0);

Descriptor open_of_size(const std::string& path, std::uint64_t bytes) {
  auto [file, size] = open_regular(path);
  if (size != bytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes, the manifest says {}", path, with_commas(size), with_commas(bytes));
  }
  return std::move(file);
}

}  // namespace

CheckedInput::CheckedInput(const std::string& path, std::uint64_t bytes, Progress& progress)
    : path_(path),
      bytes_(bytes),
      progress_(progress),
      file_(open_of_size(path, bytes)),
      crc_file_(open_of_size(path + layout::kCrcSuffix, layout::crc_bytes(bytes))) {}

void CheckedInput::check_range(std::uint64_t begin, std::uint64_t count) const {
  if (begin <= bytes_ && count <= bytes_ - begin) return;
  raise(ErrorKind::Corruption, "{}: {} bytes at {}, past its end at {}", path_, with_commas(count), with_commas(begin),
        with_commas(bytes_));
}

std::span<const std::byte> CheckedInput::at(std::uint64_t offset) {
  if (offset < begin_ || offset - begin_ >= buffer_.size()) load(offset);
  return std::span<const std::byte>(buffer_).subspan(offset - begin_);
}

void CheckedInput::load(std::uint64_t offset) {
  begin_ = offset / kCrcBlockBytes * kCrcBlockBytes;
  buffer_.resize(std::min(kCheckedBytes, bytes_ - begin_));
  read_exactly(file_.get(), buffer_, begin_, path_);
  crcs_.resize(layout::crc_bytes(buffer_.size()) / sizeof(std::uint32_t));
  read_exactly(crc_file_.get(), std::as_writable_bytes(std::span(crcs_)),
               begin_ / kCrcBlockBytes * sizeof(std::uint32_t), path_ + layout::kCrcSuffix);
  for (std::size_t block = 0; block < crcs_.size(); ++block) {
    const std::uint64_t from = block * kCrcBlockBytes;
    const auto part = std::span(buffer_).subspan(from, std::min(kCrcBlockBytes, buffer_.size() - from));
    if (crc32c(part) == crcs_[block]) continue;
    buffer_.clear();
    raise(ErrorKind::Corruption, "{}: bytes {} to {} do not have their CRC32C: `penstock verify` names all that do not",
          path_, begin_ + from, begin_ + from + part.size());
  }
  progress_.passed(buffer_.size());
}

}  // namespace penstock::writer
