// InputFile: one file of a shard, read from front to back or anywhere, for those who rewrite or verify a dataset.
//
// One thread at a time. Memory is a buffer of 1 MiB, of 8 MiB where a file is far.
#pragma once

#include "core/io/byte_store.h"
#include "writer/folder/system.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

class InputFile {
 public:
  /// Throws NotFound, IoError, Corruption (not a regular file, not of `bytes` bytes). `far` is where it lies, if it is
  /// not on this machine, and outlives this.
  InputFile(std::string path, std::uint64_t bytes, ByteStore* far = nullptr);

  /// The next `count` bytes or fewer, at least one unless the file ends; valid until the next call.
  std::span<const std::byte> next(std::uint64_t count);

  /// The next value. Throws Corruption where the file ends.
  template <typename T>
  T next_value() {
    T value;
    std::span<std::byte> out = std::as_writable_bytes(std::span(&value, 1));
    while (!out.empty()) {
      const std::span<const std::byte> part = need(out.size());
      std::memcpy(out.data(), part.data(), part.size());
      out = out.subspan(part.size());
    }
    return value;
  }

  /// Calls take(part) for the next `count` bytes. Throws Corruption where the file ends.
  template <typename Take>
  void take(std::uint64_t count, Take&& take) {
    while (count != 0) {
      const std::span<const std::byte> part = need(count);
      take(part);
      count -= part.size();
    }
  }

  /// Reads at any offset; the place of next() stays.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }  // of the next byte
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::span<const std::byte> need(std::uint64_t count);
  void read(std::uint64_t offset, std::span<std::byte> out) const;

  std::string path_;
  ByteStore* far_;
  Descriptor file_;
  std::uint64_t bytes_;
  std::uint64_t offset_ = 0;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> ready_;  // read and not yet given
};

}  // namespace penstock::writer
