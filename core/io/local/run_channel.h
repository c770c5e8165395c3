// RunChannel: a channel that reads in the thread that asks, neighbours at once.
//
// wait() reads the next reads of one owner (a row, or rows that are read together), run of neighbours after run, and
// hands them out, so that rows are cast while they are in the core's cache. It never blocks for anything else, so there
// is nothing for wake() to interrupt. Owned by one thread; holds its store's cache.
#pragma once

#include "core/io/byte_store.h"
#include "core/io/local/channel_files.h"
#include "core/io/read_queue.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace penstock {

class RunChannel : public Channel {
 public:
  void submit(std::span<Read* const> reads) override {
    queue_.push(reads);
    fresh_ += reads.size();
  }
  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override;
  void wake() override {}

 protected:
  explicit RunChannel(std::shared_ptr<ProcessFdCache> files) : files_(std::move(files)) {}

  ChannelFiles files_;

 private:
  /// New reads, before the first of them is read.
  virtual void prepare(std::span<Read* const> /*reads*/) {}
  /// Reads all of them, each to its end or its error. What it throws is the error of each.
  virtual void read_run(std::span<Read* const> run) = 0;

  ReadQueue queue_;
  std::size_t fresh_ = 0;  // of the queue, at the end: not prepared
  std::size_t ended_ = 0;  // of the queue, from the front: not handed out
};

}  // namespace penstock
