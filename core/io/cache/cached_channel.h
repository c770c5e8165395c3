// CachedChannel: reads kept pages from this machine's disk, and the others through a channel of the store around which
// the cache is.
//
// A run of neighbours is widened to whole pages, since a page is compared as a whole; its bytes go where they are
// wanted, from disk and from the network, and what lies beside them to the channel's own memory. Owned by one thread.
#pragma once

#include "core/io/byte_store.h"
#include "core/io/cache/kept_files.h"
#include "core/io/cache/page_sums.h"
#include "core/io/cache/page_writer.h"
#include "core/io/read_queue.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace penstock {

class CachedChannel final : public Channel {
 public:
  /// Of `files`, which are those of `store`. What is not kept is read through `behind`. All outlive it.
  CachedChannel(KeptFiles& files, ByteStore& store, ByteStore& behind, ChannelMode mode);
  ~CachedChannel() override;

  void submit(std::span<Read* const> reads) override;
  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override;
  void wake() override;

 private:
  struct Job;
  struct Lane {
    std::unique_ptr<Channel> channel;
    std::size_t under_way = 0;  // reads
  };

  void begin_queued();
  void begin(std::span<Read* const> run);
  bool plan_pages(Job& job);
  void plan_pieces(Job& job);
  void begin_local(Job& job);
  void begin_remote(Job& job);
  void add_remote(Job& job, std::uint64_t begin, std::uint64_t end);
  void submit(Lane& lane, Job& job, std::vector<Read>& reads);
  std::size_t collect(Lane& lane, std::chrono::nanoseconds timeout);
  void end_local(Job& job);
  void end_remote(Job& job);
  void fill(Job& job, std::span<const Read> range);
  void finish(Job& job);
  void set_channel(Lane& lane, std::unique_ptr<Channel> channel);
  void ready_local();
  std::size_t hand_out(std::span<Read*> done);

  KeptFiles& files_;
  ByteStore& store_;
  ByteStore& behind_;
  const ChannelMode mode_;
  PageWriter writer_;
  ReadQueue queue_;  // not begun
  ReadQueue ended_;  // not handed out
  std::size_t begun_ = 0;
  std::vector<std::unique_ptr<Job>> jobs_;  // all that were ever needed
  std::vector<Job*> idle_;
  std::vector<Read*> pointers_;
  std::vector<std::uint32_t> found_sums_;
  std::uint64_t local_reads_ = 0;
  bool has_bulk_ = false;  // `local_` is a channel for many reads
  std::atomic<bool> woken_{false};
  std::mutex mutex_;  // the lanes' channels are set on the owner's thread alone; wake() looks from others
  Lane local_;        // after the jobs: channels end their reads before the memory goes that these write to
  Lane remote_;
};

}  // namespace penstock
