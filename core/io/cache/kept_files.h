// KeptFiles: the files of a cache: which there are, and which of their pages are to stay. Any thread; not after a fork.
#pragma once

#include "core/io/cache/block_share.h"
#include "core/io/cache/cache_folder.h"
#include "core/io/cache/cached_file.h"
#include "core/io/file.h"
#include "core/io/local/local_store.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace penstock {

class KeptFiles {
 public:
  /// They are read through `local`.
  explicit KeptFiles(std::shared_ptr<LocalStore> local);
  ~KeptFiles();
  KeptFiles(const KeptFiles&) = delete;
  KeptFiles& operator=(const KeptFiles&) = delete;

  /// From now on those in these folders, the longest address first, of which `share` stays. Once, before any is found.
  void keep(std::vector<CacheFolder> folders, BlockShare share);

  /// The part of the files that is kept.
  [[nodiscard]] BlockShare share() const noexcept { return share_; }
  [[nodiscard]] CacheCounts& counts() noexcept { return counts_; }
  [[nodiscard]] LocalStore& local() const noexcept { return *local_; }
  /// Where the pages of a file are; null: nothing of it is kept. It lives as long as this.
  CachedFile* find(const File& file);
  /// Files that lie in this memory are gone.
  void forget(std::span<const std::byte> files) noexcept;

 private:
  CachedFile* find_path(const std::string& path, std::uint64_t bytes);

  const std::shared_ptr<LocalStore> local_;
  std::vector<CacheFolder> folders_;
  BlockShare share_;
  CacheCounts counts_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<CachedFile>> files_;
  struct Known {
    File file;  // a copy, so that another File at the same address is noticed
    CachedFile* at = nullptr;
  };
  std::unordered_map<const File*, Known> known_;
};

}  // namespace penstock
