// What is claimed next, and by whom.
#include "core/engine/work_queue.h"

#include "tests/native/core/engine/loader_fixture.h"

namespace penstock::testing {
namespace {

using Phase = Batch::Phase;

struct Queue : WorkQueue {
  /// A batch of windows, or of documents, in this phase, after all others.
  std::shared_ptr<Batch> add(std::uint64_t rows, Phase phase = Phase::Reading, std::uint64_t window = 5) {
    auto batch = batch_of(format_of({}, window), rows, rows);
    batch->phase = phase;
    push(batch);
    return batch;
  }
  /// Claims up to `most` rows: these.
  void expect_claim(Claimant by, std::uint64_t most, const std::shared_ptr<Batch>& batch, std::uint64_t first,
                    std::uint64_t last) {
    Claim claim;
    ASSERT_TRUE(WorkQueue::claim(by, most, claim));
    EXPECT_EQ(claim.batch, batch);
    EXPECT_EQ(claim.first, first);
    EXPECT_EQ(claim.last, last);
  }
  bool finds_nothing(Claimant by) {
    Claim none;
    return !WorkQueue::claim(by, 8, none);
  }
};

TEST(WorkQueue, TheOldestBatchIsSharedAmongTheThreads) {
  Queue queue;
  const auto first = queue.add(5);
  const auto second = queue.add(2);
  queue.expect_claim(Claimant::Thread, 3, first, 0, 3);
  queue.expect_claim(Claimant::Consumer, 3, first, 3, 5);
  EXPECT_EQ(queue.unfinished(), 2U) << "claimed is not read";
  queue.expect_claim(Claimant::Thread, 3, second, 0, 2);
  EXPECT_TRUE(queue.finds_nothing(Claimant::Thread));
  EXPECT_TRUE(queue.empty());
}

// Meanwhile it sees neither signals nor that its batch is there.
TEST(WorkQueue, TheConsumerTakesFewLargeRowsAtOnce) {
  for (const auto& [row_bytes, rows] :
       {std::pair{100U << 10, 5U}, std::pair{300U << 10, 1U}, std::pair{9U << 20, 1U}}) {
    Queue queue;
    const auto batch = queue.add(8);
    batch->slab.ensure(8ULL * row_bytes);
    queue.expect_claim(Claimant::Consumer, 8, batch, 0, rows);
    queue.expect_claim(Claimant::Thread, 8, batch, rows, 8);
  }
}

TEST(WorkQueue, OneClaimAsksTheOrder) {
  Queue queue;
  const auto batch = queue.add(4, Phase::Planned);
  Claim claim;
  ASSERT_TRUE(queue.claim(Claimant::Thread, 2, claim));
  EXPECT_TRUE(claim.pick);
  EXPECT_FALSE(queue.has_work());
  WorkQueue::enter(*batch, Phase::Reading);
  queue.claim_rows(2, claim);
  EXPECT_EQ(std::pair(claim.first, claim.last), std::pair(std::uint64_t{0}, std::uint64_t{2}));
  EXPECT_TRUE(queue.has_work());
}

TEST(WorkQueue, TheConsumerLeavesRaggedRowsToThreads) {
  Queue queue;
  const auto ragged = queue.add(4, Phase::Measuring, 0);
  const auto fixed = queue.add(4);
  queue.expect_claim(Claimant::Consumer, 8, fixed, 0, 4);
  EXPECT_TRUE(queue.finds_nothing(Claimant::Consumer));
  queue.expect_claim(Claimant::Thread, 8, ragged, 0, 4);
}

TEST(WorkQueue, RowsGivenBackAreForThreadsBeforeAllOthersAndStayTogether) {
  Queue queue;
  const auto first = queue.add(8);
  const auto second = queue.add(2);
  queue.expect_claim(Claimant::Consumer, 8, first, 0, 8);
  for (const std::uint64_t row : {1, 2, 3, 6}) {
    first->rows[row].round = 2;
    queue.give_back(first, row);
    EXPECT_EQ(first->rows[row].round, 0U);
  }
  EXPECT_FALSE(queue.empty());
  queue.expect_claim(Claimant::Thread, 8, first, 1, 4);
  queue.expect_claim(Claimant::Consumer, 8, second, 0, 2);
  queue.expect_claim(Claimant::Thread, 8, first, 6, 7);
  EXPECT_TRUE(queue.empty());
}

TEST(WorkQueue, CancellingForgetsAll) {
  Queue queue;
  const auto batch = queue.add(2);
  queue.expect_claim(Claimant::Consumer, 8, batch, 0, 2);
  queue.give_back(batch, 0);
  queue.cancel_all();
  EXPECT_TRUE(batch->cancelled);
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.has_work());
}

}  // namespace
}  // namespace penstock::testing
