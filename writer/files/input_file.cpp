#include "writer/files/input_file.h"

#include "core/base/error.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kInputBufferBytes = 1U << 20;
constexpr std::uint64_t kFarBufferBytes = 8U << 20;  // a request each, one after the other

// The size of a file that is to be empty. Some servers answer a question for its first byte without a size.
std::uint64_t size_of_empty(ByteStore& far, const std::string& path) {
  constexpr std::uint64_t kMost = 1U << 20;
  std::string text;
  return far.read_whole(path, kMost, text) ? text.size() : far.size(path, Links::Follow);
}

}  // namespace

InputFile::InputFile(std::string path, std::uint64_t bytes, ByteStore* far)
    : path_(std::move(path)), far_(far), bytes_(bytes) {
  std::uint64_t size = 0;
  if (far_ != nullptr) {
    size = bytes == 0 ? size_of_empty(*far_, path_) : far_->size(path_, Links::Follow);
  } else {
    std::tie(file_, size) = open_regular(path_);
  }
  if (size != bytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes, the manifest says {}", path_, with_commas(size), with_commas(bytes));
  }
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (far_ != nullptr) {
    far_->read_small(path_, offset, out);
  } else {
    read_exactly(file_.get(), out, offset, path_);
  }
}

std::span<const std::byte> InputFile::next(std::uint64_t count) {
  if (ready_.empty()) {
    buffer_.resize(std::min(far_ != nullptr ? kFarBufferBytes : kInputBufferBytes, bytes_ - offset_));
    if (!buffer_.empty()) read(offset_, buffer_);
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
  read(offset, out);
}

}  // namespace penstock::writer
