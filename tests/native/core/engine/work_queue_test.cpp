// What is claimed next, and by whom.
#include "core/engine/work_queue.h"
#include "core/engine/batch_work.h"

#include "tests/native/core/engine/loader_fixture.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace penstock::testing {
namespace {

std::shared_ptr<Batch> batch_of(std::uint64_t window, std::uint64_t rows, Batch::Phase phase) {
  auto formats = std::make_shared<BatchFormats>();
  formats->push_back(format_of({}, window));
  auto batch = std::make_shared<Batch>();
  batch->formats = formats;
  batch->format = &formats->front();
  batch->plan.rows = batch->plan.valid = rows;
  batch->picks.resize(rows);
  BatchWork(*batch).prepare_rows();
  batch->phase = phase;
  return batch;
}

void expect_claim(const Claim& claim, const std::shared_ptr<Batch>& batch, std::uint64_t first, std::uint64_t last) {
  EXPECT_EQ(claim.batch, batch);
  EXPECT_EQ(claim.first, first);
  EXPECT_EQ(claim.last, last);
}

TEST(WorkQueue, TheOldestBatchIsSharedAmongTheThreads) {
  WorkQueue queue;
  const std::uint64_t rows = 3;
  const auto first = batch_of(5, 5, Batch::Phase::Reading);
  const auto second = batch_of(5, 2, Batch::Phase::Reading);
  queue.push(first);
  queue.push(second);
  Claim claim;
  ASSERT_TRUE(queue.claim(Claimant::Thread, rows, claim));
  expect_claim(claim, first, 0, 3);
  ASSERT_TRUE(queue.claim(Claimant::Consumer, rows, claim));
  expect_claim(claim, first, 3, 5);
  EXPECT_EQ(queue.unfinished(), 2U) << "claimed is not read";
  ASSERT_TRUE(queue.claim(Claimant::Thread, rows, claim));
  expect_claim(claim, second, 0, 2);
  EXPECT_FALSE(queue.claim(Claimant::Thread, rows, claim));
  EXPECT_TRUE(queue.empty());
}

// Meanwhile it sees neither signals nor that its batch is there.
TEST(WorkQueue, TheConsumerTakesFewLargeRowsAtOnce) {
  for (const auto& [row_bytes, rows] :
       {std::pair{100U << 10, 5U}, std::pair{300U << 10, 1U}, std::pair{9U << 20, 1U}}) {
    WorkQueue queue;
    const auto batch = batch_of(5, 8, Batch::Phase::Reading);
    batch->slab.ensure(8ULL * row_bytes);
    queue.push(batch);
    Claim claim;
    ASSERT_TRUE(queue.claim(Claimant::Consumer, 8, claim));
    expect_claim(claim, batch, 0, rows);
    ASSERT_TRUE(queue.claim(Claimant::Thread, 8, claim));
    expect_claim(claim, batch, rows, 8);
  }
}

TEST(WorkQueue, OneClaimAsksTheOrder) {
  WorkQueue queue;
  const std::uint64_t rows = 2;
  const auto batch = batch_of(5, 4, Batch::Phase::Planned);
  queue.push(batch);
  Claim claim;
  ASSERT_TRUE(queue.claim(Claimant::Thread, rows, claim));
  EXPECT_TRUE(claim.pick);
  EXPECT_FALSE(queue.has_work());
  WorkQueue::enter(*batch, Batch::Phase::Reading);
  queue.claim_rows(rows, claim);
  expect_claim(claim, batch, 0, 2);
  EXPECT_TRUE(queue.has_work());
}

TEST(WorkQueue, TheConsumerLeavesRaggedRowsToThreads) {
  WorkQueue queue;
  const std::uint64_t rows = 8;
  queue.push(batch_of(0, 4, Batch::Phase::Measuring));
  const auto fixed = batch_of(5, 4, Batch::Phase::Reading);
  queue.push(fixed);
  Claim claim;
  ASSERT_TRUE(queue.claim(Claimant::Consumer, rows, claim));
  expect_claim(claim, fixed, 0, 4);
  EXPECT_FALSE(queue.claim(Claimant::Consumer, rows, claim));
  EXPECT_TRUE(queue.claim(Claimant::Thread, rows, claim));
}

TEST(WorkQueue, RowsGivenBackAreForThreadsBeforeAllOthersAndStayTogether) {
  WorkQueue queue;
  const std::uint64_t rows = 8;
  const auto first = batch_of(5, 8, Batch::Phase::Reading);
  const auto second = batch_of(5, 2, Batch::Phase::Reading);
  queue.push(first);
  queue.push(second);
  Claim claim;
  ASSERT_TRUE(queue.claim(Claimant::Consumer, rows, claim));
  for (const std::uint64_t row : {1, 2, 3, 6}) {
    first->rows[row].round = 2;
    queue.give_back(first, row);
    EXPECT_EQ(first->rows[row].round, 0U);
  }
  EXPECT_FALSE(queue.empty());
  ASSERT_TRUE(queue.claim(Claimant::Thread, rows, claim));
  expect_claim(claim, first, 1, 4);
  ASSERT_TRUE(queue.claim(Claimant::Consumer, rows, claim));
  expect_claim(claim, second, 0, 2);
  ASSERT_TRUE(queue.claim(Claimant::Thread, rows, claim));
  expect_claim(claim, first, 6, 7);
  EXPECT_TRUE(queue.empty());
}

TEST(WorkQueue, CancellingForgetsAll) {
  WorkQueue queue;
  const std::uint64_t rows = 8;
  const auto batch = batch_of(5, 2, Batch::Phase::Reading);
  queue.push(batch);
  Claim claim;
  ASSERT_TRUE(queue.claim(Claimant::Consumer, rows, claim));
  queue.give_back(batch, 0);
  queue.cancel_all();
  EXPECT_TRUE(batch->cancelled);
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.has_work());
}

}  // namespace
}  // namespace penstock::testing
