// UringChannel: a channel whose reads are under way in a ring of io_uring while its thread casts others.
//
// What the page cache holds is copied by the thread itself (preadv2 with RWF_NOWAIT), which is faster than a ring and
// leaves the bytes in the core's cache; what it does not hold goes to the ring. `direct` files (O_DIRECT) have no page
// cache: all goes to the ring, in whole blocks. Reads of one owner that are neighbours in the queue are handed out
// together where the page cache has them: a row needs all of its reads. A read that the ring refuses or cuts short is
// done again by pread, so errors are told in the same words by every channel. Owned by one thread; holds its store's
// cache of descriptors.
#pragma once

#include "core/io/byte_store.h"
#include "core/io/local/channel_files.h"
#include "core/io/local/direct_read.h"
#include "core/io/local/file_reads.h"
#include "core/io/local/ring.h"
#include "core/io/read_queue.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace penstock {

class UringChannel final : public Channel {
 public:
  static constexpr unsigned kDepth = 64;  // reads under way at most

  /// Throws IoError if there can be no ring.
  UringChannel(std::shared_ptr<ProcessFdCache> files, bool direct);
  ~UringChannel() override;

  void submit(std::span<Read* const> reads) override;
  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override;
  void wake() override { ring_.wake(); }

 private:
  struct Operation {  // a run in the ring
    std::vector<Read*> run;
    std::optional<FdPin> pin;
    Pieces pieces;
    std::uint64_t expected = 0;
    DirectRead direct;
  };

  [[nodiscard]] bool goes_on(std::size_t most) const;
  bool begin_next();
  const FdPin* hold(const File& file);
  bool begin(std::span<Read* const> run);
  [[nodiscard]] bool has_room(const FdPin& pin, std::span<Read* const> run) const;
  std::uint64_t read_from_cache(int fd, std::span<Read* const> run);
  void enqueue(FdPin pin, std::span<Read* const> run, std::uint64_t got);
  void complete(const Ring::Completion& completion);
  static void read_each_direct(DirectRead& direct, int fd, std::span<Read* const> run);
  void collect(std::chrono::nanoseconds patience);
  std::size_t hand_out(std::span<Read*> done);

  ChannelFiles files_;
  const bool direct_;
  ReadQueue queue_;  // not begun
  ReadQueue ended_;  // not handed out
  std::vector<std::unique_ptr<Operation>> idle_;
  std::size_t reads_under_way_ = 0;
  std::uint64_t bytes_under_way_ = 0;
  std::uint64_t misses_ = 0;  // runs in a row that the page cache did not have, or that did not ask
  Ring ring_;
};

}  // namespace penstock
