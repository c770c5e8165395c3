// RowRunner: drives rows through their source's stages, on channels of its own thread.
//
// start() plans a row's first reads; pump() submits what is planned, collects what ended and plans the next stage of
// rows whose reads are all there, until nothing can go on without waiting. With a channel that reads at once (pread)
// rows are finished inside pump(); with one that does not (a ring, an object store) many rows are under way. One
// thread; only wake() may be called by others.
#pragma once

#include "core/batch/batch.h"
#include "core/io/byte_store.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace penstock {

class RowRunner {
 public:
  /// Which stages a row goes through before it is done: all; until its length is measured; the rest after that.
  enum class Part { Whole, Measure, AfterMeasure };
  /// Called on this thread when a row is done; `error` is set if it failed. A Whole or AfterMeasure row has its spans
  /// and columns if its outcome is Done.
  using Done =
      std::function<void(const std::shared_ptr<Batch>&, std::uint64_t row, Outcome outcome, std::exception_ptr error)>;

  /// Reads through the stores that `through` chooses, on channels of this mode.
  RowRunner(Done done, StoreChoice through, ChannelMode mode);
  /// Waits for reads under way: they write into batches.
  ~RowRunner();
  RowRunner(const RowRunner&) = delete;
  RowRunner& operator=(const RowRunner&) = delete;

  /// Throws only if it did not take the row (no memory); what goes wrong later is told to `done`.
  void start(const std::shared_ptr<Batch>& batch, std::uint64_t row, Part part);
  /// Goes on with all rows; waits for at most `patience` if that is the only way.
  void pump(std::chrono::nanoseconds patience);
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }
  /// Makes a waiting pump() return. Any thread.
  void wake();

 private:
  struct Flight {
    std::shared_ptr<Batch> batch;
    std::uint64_t row = 0;
    Part part = Part::Whole;
    bool more = true;          // a stage follows the reads under way
    std::size_t pending = 0;   // reads under way
    bool missed = false;       // one of them was not at hand
    std::exception_ptr error;  // the first of them that failed
    Reads reads;
  };
  struct Lane {                        // one store's channel and the reads planned for it
    ByteStore* files = nullptr;        // the store that their files name
    std::unique_ptr<Channel> channel;  // null: nothing is at hand there
    std::vector<Read*> planned;
    std::size_t under_way = 0;
  };

  void advance(Flight& flight);
  bool plan_stage(Flight& flight);
  void finish(Flight& flight);
  void complete(Read& read);
  void submit(Lane& lane);
  std::size_t collect(Lane& lane, std::chrono::nanoseconds patience);
  Lane& lane_of(ByteStore& files);

  Done done_;
  const StoreChoice through_;
  const ChannelMode mode_;
  std::vector<std::unique_ptr<Lane>> lanes_;   // few; grows while pump() goes through it
  std::mutex lanes_mutex_;                     // lanes_ changes on this thread alone; wake() looks from others
  std::vector<std::unique_ptr<Flight>> idle_;  // flights to use again; one under way is owned by its row's pointer
  std::size_t flights_ = 0;                    // that exist, idle or not
  std::size_t in_flight_ = 0;
};

}  // namespace penstock
