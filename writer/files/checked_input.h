// CheckedInput: a file of a shard, each block of which is compared with its CRC32C before it is given: what rewrites a
// dataset must not write damaged bytes under new checksums.
//
// One thread at a time. Memory is a buffer of 1 MiB.
#pragma once

#include "core/base/error.h"
#include "writer/files/progress.h"
#include "writer/folder/system.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

class CheckedInput {
 public:
  /// `progress` counts what is read and outlives this. Throws NotFound, IoError; Corruption (not a regular file, not of
  /// `bytes` bytes, a side file of another size).
  CheckedInput(const std::string& path, std::uint64_t bytes, Progress& progress);

  /// Calls take(part) for [begin, begin + count). Cheap from front to back; elsewhere it reads anew from that block on.
  /// Throws Corruption past the end and for a block that does not have its CRC32C; IoError.
  template <typename Take>
  void take(std::uint64_t begin, std::uint64_t count, Take&& take) {
    check_range(begin, count);
    while (count != 0) {
      const std::span<const std::byte> there = at(begin);
      const auto part = there.first(std::min<std::uint64_t>(count, there.size()));
      take(part);
      begin += part.size();
      count -= part.size();
    }
  }

  /// Fills `out` from `begin` on. Throws as take().
  void read(std::uint64_t begin, std::span<std::byte> out) {
    take(begin, out.size(), [&](std::span<const std::byte> part) {
      std::memcpy(out.data(), part.data(), part.size());
      out = out.subspan(part.size());
    });
  }

  /// A trivially copyable value at `begin`.
  template <typename T>
  T value(std::uint64_t begin) {
    T value;
    read(begin, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  void check_range(std::uint64_t begin, std::uint64_t count) const;
  std::span<const std::byte> at(std::uint64_t offset);
  void load(std::uint64_t offset);

  std::string path_;
  std::uint64_t bytes_;
  Progress& progress_;
  Descriptor file_;
  Descriptor crc_file_;
  std::vector<std::byte> buffer_;
  std::vector<std::uint32_t> crcs_;
  std::uint64_t begin_ = 0;  // of the buffer
};

}  // namespace penstock::writer
