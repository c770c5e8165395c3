// CacheFolder: the pages that are kept of one dataset: DIR/<identity>/, two sparse files for each of its files.
//
// NAME.data has the file's bytes at their places, NAME.crc the CRC32C (u32) of each 4 KiB of them; 0: the page is not
// there. Nothing is locked, synced or renamed: whatever a crash or a race leaves is a wrong check value, and so a page
// that is read again. Processes share it. Any thread.
#pragma once

#include "core/io/cache/block_share.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock {

/// A file of a dataset, and how many bytes it has.
struct CacheableFile {
  std::string path;
  std::uint64_t bytes = 0;
};

class CacheFolder {
 public:
  /// In the cache at `root`, for what is at `address` in the state that `version` tells. Nothing is made yet.
  CacheFolder(const std::string& root, std::string address, std::string_view version);

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Whether a file of this path is one of the dataset's: the address itself, with a suffix, or below it.
  [[nodiscard]] bool holds(std::string_view path) const noexcept;
  /// The name of such a file here, without its suffix.
  [[nodiscard]] std::string name_of(std::string_view path) const;

  /// Makes it. Throws IoError.
  void create() const;
  /// Bytes of disk that it takes now.
  [[nodiscard]] std::uint64_t disk_bytes() const;
  /// Removes what lies beyond the share of `files`, if it was filled with a larger one or takes more than `most_bytes`,
  /// and notes the share. Throws IoError.
  void settle(std::span<const CacheableFile> files, BlockShare share, std::uint64_t most_bytes) const;

 private:
  void prune(const CacheableFile& file, BlockShare share) const;
  [[nodiscard]] std::string about_path() const { return path_ + "/about.json"; }

  std::string address_;
  std::string path_;
};

}  // namespace penstock
