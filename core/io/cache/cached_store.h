// CachedStore: another store's files, of which a part stays on this machine's disk once it was read.
//
// A dataset is opened through it as through the other store; keep() then says what may stay. Pages of 4 KiB are kept
// and compared with a CRC32C at each use: a wrong one is read again (cache_folder.h). A child after a fork may not
// read. Any thread.
#pragma once

#include "core/io/byte_store.h"
#include "core/io/cache/block_share.h"
#include "core/io/cache/cache_folder.h"
#include "core/io/cache/kept_files.h"
#include "core/io/local/local_store.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace penstock {

class CachedStore final : public ByteStore {
 public:
  /// Around `store`, in the folder at `root`, whose files are read through `local`. Makes the folder. Throws IoError if
  /// it cannot be written.
  CachedStore(std::shared_ptr<ByteStore> store, const std::shared_ptr<LocalStore>& local, std::string root);

  /// What is kept of: `address`, as files' paths begin, in the state that `version` tells: a change of any byte of the
  /// files is another version.
  struct Content {
    std::string address;
    std::string version;
  };
  /// From now on keeps what is read of `files`, those that there are at these addresses, in at most `most_bytes` of
  /// disk; by default half of what is free or kept of them already. Removes what is beyond. Before the first channel is
  /// opened, once. Throws IoError.
  void keep(std::span<const Content> contents, std::span<const CacheableFile> files,
            std::optional<std::uint64_t> most_bytes);

  /// The part of the files that is kept.
  [[nodiscard]] BlockShare share() const noexcept { return kept_.share(); }
  [[nodiscard]] CacheCounts& counts() noexcept { return kept_.counts(); }
  [[nodiscard]] const std::shared_ptr<ByteStore>& inner() const noexcept { return store_; }
  /// XXH3-128 of a file that was read whole, 32 hex digits; empty if it was not.
  [[nodiscard]] std::string digest_of_whole(const std::string& path) const;

  /// The same cache, where what is not kept is read through another way to the same files. It may not outlive this.
  [[nodiscard]] std::shared_ptr<ByteStore> filled_through(std::shared_ptr<ByteStore> behind);
  /// A channel of that.
  std::unique_ptr<Channel> open_channel_to(ByteStore& behind, ChannelMode mode);

  std::unique_ptr<Channel> open_channel(ChannelMode mode) override { return open_channel_to(*store_, mode); }
  std::uint64_t size(const std::string& path, Links links) override { return store_->size(path, links); }
  std::string resolve(const std::string& path) override { return store_->resolve(path); }
  void read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) override {
    store_->read_small(path, offset, out);
  }
  bool read_whole(const std::string& path, std::uint64_t most, std::string& text) override;
  std::vector<std::string> list(const std::string& path) override { return store_->list(path); }
  void forget(std::span<const std::byte> files) noexcept override;
  bool doubt(const File& file, std::uint64_t offset, std::uint64_t size) noexcept override;
  [[nodiscard]] std::size_t reads_in_flight() override { return store_->reads_in_flight(); }
  [[nodiscard]] std::uint64_t near_bytes() const override { return store_->near_bytes(); }
  [[nodiscard]] std::uint64_t most_unwanted() const override { return store_->most_unwanted(); }
  [[nodiscard]] std::uint64_t most_bytes() const override { return store_->most_bytes(); }
  [[nodiscard]] bool is_far() const override { return store_->is_far(); }
  void while_waiting() override { store_->while_waiting(); }
  [[nodiscard]] std::uint64_t block_bytes() const override { return store_->block_bytes(); }
  [[nodiscard]] std::string name() override { return store_->name(); }

 private:
  const std::shared_ptr<ByteStore> store_;
  const std::string root_;
  const std::uint64_t forks_;
  KeptFiles kept_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, std::string> digests_;
};

}  // namespace penstock
