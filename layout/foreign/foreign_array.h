// ForeignArray: an array of a foreign file, read element by element through a buffer while a dataset is opened.
//
// One thread at a time.
#pragma once

#include "layout/dataset/digest.h"
#include "layout/foreign/foreign_file.h"
#include "layout/reading/reads.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::layout {

/// Elements need not be aligned. Every byte goes into a digest of its own.
template <typename T>
class ForeignArray {
 public:
  ForeignArray(const ForeignFile& file, std::uint64_t offset, std::uint64_t count)
      : file_(file), offset_(offset), left_(count) {}

  /// The next element; only as often as there are elements. Throws as ForeignFile::read().
  T next() {
    if (at_ == buffer_.size()) fill();
    const T value = load<T>(&buffer_[at_]);
    at_ += sizeof(T);
    return value;
  }

  [[nodiscard]] DigestBytes digest() const { return digest_.bytes(); }

 private:
  static constexpr std::uint64_t kBufferBytes = 1U << 20;  // a request of the store each

  void fill() {
    const std::uint64_t count = std::min<std::uint64_t>(left_, kBufferBytes / sizeof(T));
    buffer_.resize(count * sizeof(T));
    file_.read(offset_, buffer_);
    digest_.update(buffer_);
    offset_ += buffer_.size();
    left_ -= count;
    at_ = 0;
  }

  const ForeignFile& file_;
  std::uint64_t offset_;
  std::uint64_t left_;
  std::vector<std::byte> buffer_;
  std::size_t at_ = 0;
  Digest digest_;
};

}  // namespace penstock::layout
