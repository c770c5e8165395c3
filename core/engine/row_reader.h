// RowReader: drives rows through the rounds of their source, on channels of its own thread.
//
// start() plans a row's first reads, or those of a group; pump() submits what is planned, collects what ended and plans
// the next round where all reads of one have ended, until nothing can go on without waiting. With a channel that reads
// at once (pread) rows are finished inside pump(); with one that does not (a ring, an object store) many rows are under
// way. One thread; only wake() may be called by others.
#pragma once

#include "core/batch/batch.h"
#include "core/engine/file_changes.h"
#include "core/engine/lanes.h"
#include "core/engine/metrics.h"
#include "core/engine/row_group.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

namespace penstock {

class RowReader {
 public:
  /// Which rounds a row goes through before it is done: all; until its length is measured; the rest after that.
  enum class Part { Whole, Measure, AfterMeasure };

  /// How a row of a batch ended.
  struct Ended {
    const std::shared_ptr<Batch>& batch;
    std::uint64_t row;
    const std::exception_ptr& error;  // set if it failed
    bool not_at_hand;                 // a non-blocking channel would have had to wait: it is to be read elsewhere
  };
  /// Called on this thread. A Whole or AfterMeasure row that has no error has its spans and columns then.
  using Done = std::function<void(const Ended&)>;

  /// Its reads are counted in `counters`, and files that changed are told to `changes`, where there are such.
  RowReader(Done done, StoreChoice choice, ChannelMode mode, ReadCounters* counters = nullptr,
            FileChanges* changes = nullptr);
  /// Waits for reads under way: they write into batches.
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  /// Throws only if it did not take the row (no memory); what goes wrong later is told to `done`.
  void start(const std::shared_ptr<Batch>& batch, std::uint64_t row, Part part);
  /// The same for a group, which is told by RowGroup::done. Only of a reader whose channels may wait.
  void start(RowGroup group);
  /// Goes on with all rows; waits for at most `patience` if that is the only way, and not if it is no longer busy.
  void pump(std::chrono::nanoseconds patience);
  /// Whether any row is under way.
  [[nodiscard]] bool is_idle() const noexcept { return flights_under_way_ == 0; }
  /// Rows and groups that have not ended.
  [[nodiscard]] std::size_t under_way() const noexcept { return flights_under_way_; }
  /// Whether its channels have reads to do as long as no others are planned.
  [[nodiscard]] bool is_busy() { return lanes_.is_busy(); }
  /// Makes a waiting pump() return. Any thread.
  void wake() { lanes_.wake(); }

 private:
  struct Flight {
    explicit Flight(bool is_group_) : is_group(is_group_) {}
    const bool is_group;
    std::size_t pending = 0;  // reads under way
  };
  struct RowFlight : Flight {
    RowFlight() : Flight(false) {}
    std::shared_ptr<Batch> batch;
    std::uint64_t row = 0;
    Part part = Part::Whole;
    bool more = true;          // a round follows the reads under way
    bool not_at_hand = false;  // of one of them
    std::exception_ptr error;  // the first of them that failed
    Reads reads;
  };
  struct GroupFlight : Flight {
    explicit GroupFlight(RowGroup group) : Flight(true), rounds(std::move(group)) {}
    GroupRounds rounds;
  };

  void advance(RowFlight& flight);
  bool plan_round(RowFlight& flight);
  void finish(RowFlight& flight);
  void advance(GroupFlight& flight);
  void plan(Read& read) noexcept;
  void complete(Lanes::Lane& lane, Read& read);
  void submit(Lanes::Lane& lane);
  std::size_t collect(Lanes::Lane& lane, std::chrono::nanoseconds patience);

  Done done_;
  Lanes lanes_;
  ReadCounters* const counters_;
  FileChanges* const changes_;
  std::vector<std::unique_ptr<RowFlight>> idle_;  // flights to use again; one under way is owned by its reads
  std::size_t row_flights_ = 0;                   // that exist, idle or not
  std::size_t flights_under_way_ = 0;
};

}  // namespace penstock
