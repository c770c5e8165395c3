// ScratchFile: a file for what a job puts aside. Without a name it is gone when the process ends, however that ends.
//
// One thread at a time.
#pragma once

#include "writer/folder/system.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace penstock::writer {

class ScratchFile {
 public:
  /// In `folder`, of `bytes` bytes, whose room is taken at once where the file system can: a disk that is too small is
  /// said before anything is done. Throws NotFound, IoError.
  ScratchFile(const std::string& folder, std::uint64_t bytes);
  /// A new one of this name, for other processes to read, which whoever makes it removes. Throws IoError.
  static ScratchFile named(const std::string& path, std::uint64_t bytes);
  /// Such a one, to be read. Throws NotFound, IoError.
  static ScratchFile existing(const std::string& path);

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// Has the kernel read these bytes ahead; and gives their room back to the disk. Advice: a refusal changes nothing.
  void want(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  void give_back(std::uint64_t offset, std::uint64_t bytes) noexcept;

  [[nodiscard]] const std::string& shown() const noexcept { return shown_; }

  /// Waits until the disk has what was written. Throws IoError.
  void sync() const { sync_file(file_.get(), shown_); }

 private:
  ScratchFile(std::string shown, Descriptor file) : shown_(std::move(shown)), file_(std::move(file)) {}
  void take_room(const std::string& folder, std::uint64_t bytes);

  std::string shown_;  // in messages
  Descriptor file_;
};

}  // namespace penstock::writer
