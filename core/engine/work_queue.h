// WorkQueue: what is to be read next: rows of batches, and the parts of fetches that batches wait for.
//
// Batches lie in it in the order in which they will be delivered, until their last row is claimed or they end. What is
// claimed is the oldest work there is; rows come before parts. A plain container: its owner's mutex guards it and the
// batches' phases.
#pragma once

#include "core/batch/batch.h"
#include "core/engine/fetch.h"
#include "core/engine/row_reader.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

/// The claimant: a thread takes any work, the consumer only rows that can be given back or need no reading.
enum class Claimant { Thread, Consumer };

/// What one of them has taken: a part of a fetch; or rows [first, last) of a batch, and before them the question which
/// observations it has.
struct Claim {
  std::shared_ptr<Batch> batch;
  Claimant by = Claimant::Thread;
  bool pick = false;  // ask the job first, then claim_rows()
  RowReader::Part part = RowReader::Part::Whole;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::shared_ptr<Stretch> stretch;  // if set, this part of it is claimed, and no batch
  FetchPart* fetch_part = nullptr;
};

class WorkQueue {
 public:
  /// Takes a Planned batch.
  void push(std::shared_ptr<Batch> batch);
  /// Takes a stretch, none of whose parts is claimed.
  void push(std::shared_ptr<Stretch> stretch) noexcept { stretches_.push(std::move(stretch)); }

  /// The oldest work, and of a batch `rows` rows at most. False if there is nothing to do. The consumer's claims are
  /// small in bytes, too: meanwhile it sees neither signals nor that its batch is there. Allocates only
  /// for the consumer's claims; without memory the consumer claims nothing.
  bool claim(Claimant by, std::uint64_t rows, Claim& claim);
  /// The next rows of claim.batch, which is Measuring or Reading.
  void claim_rows(std::uint64_t rows, Claim& claim);
  /// A row that the consumer claimed and did not read is to be read by a thread, before all others; it begins anew.
  void give_back(const std::shared_ptr<Batch>& batch, std::uint64_t row) noexcept;

  /// Whether a thread would find something to claim.
  [[nodiscard]] bool has_work() const;
  [[nodiscard]] bool empty() const noexcept { return batches_.empty() && given_back_.empty() && stretches_.empty(); }
  /// Batches that are neither Ready nor Failed.
  [[nodiscard]] std::size_t unfinished() const noexcept { return unfinished_; }
  /// Rows of the batch that would be claimed next, 0 if there is none.
  [[nodiscard]] std::uint64_t next_batch_rows() const noexcept {
    return batches_.empty() ? 0 : batches_.front()->plan.valid;
  }

  /// The oldest batch that is Fetching and whose stretches are all read: it is Picking now. Null if there is none.
  std::shared_ptr<Batch> take_fetched() noexcept;

  /// Whether all stretches that have rows of the batch are read.
  [[nodiscard]] static bool is_fetched(const Batch& batch);
  /// All rows of the batch are to be claimed in this phase.
  static void enter(Batch& batch, Batch::Phase phase);
  /// The batch is Ready or Failed.
  void end(Batch& batch, Batch::Phase phase);
  void fail(Batch& batch, std::uint64_t row, const std::exception_ptr& error);
  /// Cancels and forgets these batches, whose rows no fetches have.
  void cancel(std::span<const std::shared_ptr<Batch>> batches);
  /// Cancels and forgets all batches and stretches.
  void cancel_all();

 private:
  bool can_give_back(std::uint64_t rows) noexcept;

  struct GivenBack {
    std::shared_ptr<Batch> batch;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };

  std::deque<std::shared_ptr<Batch>> batches_;
  std::vector<GivenBack> given_back_;  // oldest first
  StretchQueue stretches_;             // with unclaimed parts
  std::size_t unfinished_ = 0;
};

}  // namespace penstock
