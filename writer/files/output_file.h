// OutputFile: one file of a shard and its side file of CRC32C values, written from front to back.
//
// One thread at a time. Memory is a buffer of 1 MiB and one of 64 KiB, whatever the file's size. The first error is
// final.
#pragma once

#include "writer/folder/system.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

class OutputFile {
 public:
  /// Creates `name` and `name`.crc in the folder `at`, shown in messages as `path`. Throws IoError.
  OutputFile(int at, const std::string& name, const std::string& path);

  /// Appends. Throws IoError naming file, offset and cause.
  void write(std::span<const std::byte> bytes);

  /// Appends one trivially copyable value.
  template <typename T>
  void write_value(const T& value) {
    write(std::as_bytes(std::span(&value, 1)));
  }

  /// Writes what is buffered, syncs and closes both files.
  void finish();

  [[nodiscard]] std::uint64_t bytes() const noexcept { return written_ + buffer_.size(); }

 private:
  void flush();
  void put(std::span<const std::byte> bytes);
  void flush_crcs();

  std::string path_;
  Descriptor file_;
  Descriptor crc_file_;
  std::vector<std::byte> buffer_;
  std::vector<std::uint32_t> crcs_;
  std::uint64_t written_ = 0;
  std::uint64_t crcs_written_ = 0;
};

}  // namespace penstock::writer
