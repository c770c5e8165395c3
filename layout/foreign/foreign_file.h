// ForeignFile: a file of another format, read while a dataset is opened. Nothing stays open.
//
// One thread at a time. What it reads is untrusted.
#pragma once

#include "core/io/open_store.h"
#include "layout/dataset/digest.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::layout {

class ForeignFile {
 public:
  /// Throws NotFound, IoError, InvalidArgument (a folder, a pipe: not a regular file).
  explicit ForeignFile(const Location& location, FileStamp stamp = {});

  [[nodiscard]] const File& file() const noexcept { return file_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return file_.bytes; }

  /// All of `out` from `offset` on. Throws IoError, Corruption (the file ends before).
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// The first bytes, `limit` or all that there are; and the last.
  [[nodiscard]] std::vector<std::byte> head(std::uint64_t limit) const;
  [[nodiscard]] std::vector<std::byte> tail(std::uint64_t limit) const;

  /// What a foreign fingerprint has of each file: its size, its first and last 4 KiB.
  void add_to(Digest& digest) const;

 private:
  std::shared_ptr<ByteStore> store_;
  std::string path_;
  File file_;
};

}  // namespace penstock::layout
