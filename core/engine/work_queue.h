// WorkQueue: which rows of which batches are to be read next.
//
// Batches lie in it in the order in which they will be delivered, until their last row is claimed or they end. What is
// claimed is the oldest work there is. A plain container: its owner's mutex guards it and the batches' phases.
#pragma once

#include "core/batch/batch.h"
#include "core/engine/row_runner.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

namespace penstock {

/// Who claims: a thread takes any work, the consumer only rows that can be given back (not ragged ones).
enum class Claimant { Thread, Consumer };

/// What one of them has taken: rows [first, last) of a batch, and before them the question which observations it has.
struct Claim {
  std::shared_ptr<Batch> batch;
  Claimant by = Claimant::Thread;
  bool pick = false;  // ask the order first, then claim_rows()
  RowRunner::Part part = RowRunner::Part::Whole;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

class WorkQueue {
 public:
  /// Takes a Planned batch.
  void push(std::shared_ptr<Batch> batch) { batches_.push_back(std::move(batch)); }
  /// One of `shares` of a batch, so that it is there soon where so many threads read at once: smaller shares only cost
  /// more claims. The consumer's are small in bytes, too: meanwhile it sees neither signals nor that its batch is
  /// there. False if there is nothing to do.
  bool claim(Claimant by, unsigned shares, Claim& claim);
  /// The next rows of claim.batch, which is Measuring or Reading.
  void claim_rows(unsigned shares, Claim& claim);
  /// A row that the consumer claimed and did not read is to be read by a thread, before all others; it begins anew.
  void give_back(const std::shared_ptr<Batch>& batch, std::uint64_t row) noexcept;
  /// Whether a thread would find something to claim.
  [[nodiscard]] bool has_work() const;
  /// Batches that have rows nobody has claimed, or will have: one of whose order is being asked counts too.
  [[nodiscard]] std::size_t batches() const noexcept { return batches_.size(); }
  [[nodiscard]] bool empty() const noexcept { return batches_.empty() && given_back_.empty(); }

  /// All rows of the batch are to be claimed in this phase.
  static void enter(Batch& batch, Batch::Phase phase);
  /// The batch is Ready or Failed.
  void end(Batch& batch, Batch::Phase phase);
  void fail(Batch& batch, std::uint64_t row, const std::exception_ptr& error);
  /// Cancels and forgets all batches.
  void cancel_all();

 private:
  struct GivenBack {
    std::shared_ptr<Batch> batch;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };

  std::deque<std::shared_ptr<Batch>> batches_;
  std::vector<GivenBack> given_back_;  // oldest first
};

}  // namespace penstock
