// Lanes: a thread's channels, one a store, and the reads that are planned for each.
//
// One thread; only wake() may be called by others.
#pragma once

#include "core/base/sync.h"
#include "core/io/byte_store.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace penstock {

class Lanes {
 public:
  struct Lane {
    ByteStore* store = nullptr;        // that files name
    std::unique_ptr<Channel> channel;  // null: none of its reads is at hand
    std::size_t depth = 1;             // requests that it wants under way
    std::vector<Read*> planned;
    std::size_t under_way = 0;  // reads
    std::size_t requests = 0;   // of the reads that are planned or under way
  };

  Lanes(StoreChoice choice, ChannelMode mode);

  /// The lane of a file's store. Throws as ByteStore::open_channel().
  Lane& of(const File& file);
  /// Whether some channel has as many requests as it wants.
  [[nodiscard]] bool is_busy() const;
  [[nodiscard]] const StoreChoice& choice() const noexcept { return choice_; }
  void wake();

  /// By number: a lane may be added while another one is used.
  [[nodiscard]] std::size_t size() const noexcept { return lanes_.size(); }
  Lane& operator[](std::size_t i) { return *lanes_[i]; }

 private:
  const StoreChoice choice_;
  const ChannelMode mode_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  sync::Mutex mutex_;  // lanes_ changes on the owner's thread alone; wake() looks from others
};

}  // namespace penstock
