// HandOver: batches whose rows are in their place and that others finish before the consumer gets them: threads of
// Python, which fill columns of their own.
//
// The engine puts a batch in; who takes rows of it gives them back, perhaps with an error. With the last ones the batch
// is ready, or has failed. Rows of the oldest batch come first. Any thread.
#pragma once

#include "core/base/sync.h"
#include "core/batch/batch.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>

namespace penstock {

class HandOver {
 public:
  /// Rows [first, last) of a batch.
  struct Rows {
    std::shared_ptr<Batch> batch;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  using Finish = std::function<void(Batch&, const std::exception_ptr&)>;

  /// `takers`: threads among which the rows of a batch are shared.
  explicit HandOver(unsigned takers) : takers_(takers > 0 ? takers : 1) {}

  // --- the engine's

  /// `finish` is called for each batch, by the thread that gives its last rows back, until detach() or close().
  void open(Finish finish);
  /// Forgets all batches: takers wait for those of the next engine.
  void detach();
  /// Takers get nothing more, and what they give back is dropped: for good.
  void close();
  /// A batch with valid rows, all of them in their place; nothing is done with one that is cancelled.
  void put(std::shared_ptr<Batch> batch);
  /// Forgets what was not taken of batches that are cancelled.
  void forget_cancelled();
  /// Forgets what was not taken.
  void cancel_all();
  /// True if nobody has rows of a batch.
  [[nodiscard]] bool idle() const;

  // --- the takers'

  /// Rows to be finished; waits for some until `patience` is over. No batch: there were none.
  Rows take(std::chrono::nanoseconds patience);
  /// They are finished, or failed with this error: that of the lowest row is the batch's. Who moves them here holds
  /// nothing of the batch once idle() is true.
  void give_back(Rows rows, const std::exception_ptr& error);
  /// True after close(): nothing will come any more.
  [[nodiscard]] bool closed() const;

 private:
  struct Entry {
    std::shared_ptr<Batch> batch;
    std::uint64_t taken = 0;     // rows
    std::uint64_t finished = 0;  // rows
    std::uint64_t error_row = UINT64_MAX;
    std::exception_ptr error = nullptr;
  };

  const unsigned takers_;
  mutable sync::Mutex mutex_;
  sync::Condition filled_;
  std::deque<Entry> entries_;  // in the order of put()
  Finish finish_;
  bool closed_ = false;
};

}  // namespace penstock
