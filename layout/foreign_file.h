// ForeignFile: a file of somebody else's format, read while opening; closed again before the dataset is used.
//
// One thread at a time. What it reads is untrusted.
#pragma once

#include "layout/digest.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace penstock::layout {

class ForeignFile {
 public:
  /// Throws NotFound, IoError, InvalidArgument (a folder, a pipe: not a regular file).
  explicit ForeignFile(std::string path);
  ~ForeignFile();
  ForeignFile(const ForeignFile&) = delete;
  ForeignFile& operator=(const ForeignFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// All of `out` from `offset` on. Throws IoError, Corruption (the file ends before).
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// The first bytes, `limit` or all that there are; and the last.
  [[nodiscard]] std::vector<std::byte> head(std::uint64_t limit) const;
  [[nodiscard]] std::vector<std::byte> tail(std::uint64_t limit) const;

  /// What a foreign fingerprint has of each file: its size, its first and last 4 KiB.
  void add_to(Digest& digest) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

}  // namespace penstock::layout
