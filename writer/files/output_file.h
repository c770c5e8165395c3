// OutputFile: one file of a shard and its side file of CRC32C values, written from front to back.
//
// One thread at a time. Memory is a buffer of 128 KiB and one of 64 KiB, whatever the file's size. The first error is
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
  /// What is written by one call. It stays in a core's cache from its CRC to the copy into the page cache, and the
  /// kernel finds pages for it at hand where larger ones have to be made.
  static constexpr std::size_t kPieceBytes = 128U << 10;

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
  /// Bytes after which a write is not copied into the buffer first.
  [[nodiscard]] std::size_t until_piece() const noexcept { return kPieceBytes - buffer_.size(); }

 private:
  void flush();
  void put(std::span<const std::byte> bytes);
  void ask_for_room() noexcept;
  void flush_crcs();

  std::string path_;
  Descriptor file_;
  Descriptor crc_file_;
  std::vector<std::byte> buffer_;
  std::vector<std::uint32_t> crcs_;
  std::uint64_t written_ = 0;
  std::uint64_t room_ = 0;  // bytes that the file system has set aside for it
  std::uint64_t crcs_written_ = 0;
};

}  // namespace penstock::writer
