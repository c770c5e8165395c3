#include "writer/input_file.h"

#include "core/base/error.h"

#include <algorithm>
#include <utility>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kBufferBytes = 1U << 20;

}  // namespace

InputFile::InputFile(std::string path, std::uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {
  auto [file, size] = open_regular(path_);
  if (size != bytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes, the manifest says {}", path_, with_commas(size), with_commas(bytes));
  }
  file_ = std::move(file);
}

std::span<const std::byte> InputFile::next(std::uint64_t count) {
  if (ready_.empty()) {
    buffer_.resize(std::min(kBufferBytes, bytes_ - offset_));
    read_exactly(file_.get(), buffer_, offset_, path_);
    ready_ = buffer_;
  }
  const std::span<const std::byte> part = ready_.first(std::min<std::uint64_t>(count, ready_.size()));
  ready_ = ready_.subspan(part.size());
  offset_ += part.size();
  return part;
}

std::span<const std::byte> InputFile::need(std::uint64_t count) {
  const std::span<const std::byte> part = next(count);
  if (part.empty()) raise(ErrorKind::Corruption, "{}: ends at {}", path_, with_commas(bytes_));
  return part;
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > bytes_ || out.size() > bytes_ - offset) {
    raise(ErrorKind::Corruption, "{}: {} bytes at {}, past its end at {}", path_, out.size(), offset, bytes_);
  }
  read_exactly(file_.get(), out, offset, path_);
}

}  // namespace penstock::writer
