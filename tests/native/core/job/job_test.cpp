#include "core/job/job.h"

#include "core/base/error.h"
#include "tests/native/core/engine/memory_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace penstock {
namespace {

const std::vector<SourceIdentity> kSources{{"aa", 1, 10, R"({"kind":"windows"})", ""},
                                           {"bb", 1, 10, R"({"kind":"windows"})", ""}};

/// Epochs of 20; a stage ends at 25.
std::shared_ptr<const Order> staged_order() {
  return std::make_shared<testing::StagedOrder>(20, std::vector<testing::Stage>{{0, 0}, {25, 1}});
}

Job make() {
  CursorOptions options;
  options.epochs = 2;
  options.skip = {{5, 7}};
  options.schedule = {{0, 4}};
  return {staged_order(), kSources, std::move(options)};
}

TEST(JobTest, AStateGoesOnWhereItWasTakenAndAnothersDoesNot) {
  const Job job = make();
  const State state = job.state(12);
  EXPECT_EQ(job.load(state, OnMismatch::Refuse).message, "resumes at epoch 0, position 12, step 3");
  const Job other(staged_order(), std::span(kSources).first(1), make().cursor().options());
  EXPECT_THROW((void)other.load(state, OnMismatch::Refuse), Error);
  EXPECT_EQ(other.load(state, OnMismatch::Restart).position, 0U);
  EXPECT_EQ(other.load(state, OnMismatch::KeepPosition).position, 12U);
  State later = state;
  later.version = 2;
  EXPECT_THROW((void)job.load(later, OnMismatch::Restart), Error);
  State beyond = state;
  beyond.position = UINT64_MAX;
  EXPECT_THROW((void)job.load(beyond, OnMismatch::Refuse), Error);
}

TEST(JobTest, AnotherBatchSizeMakesAnotherJobAndNoOtherState) {
  const Job job = make();
  const Job changed = job.with_batch_size(7, 6);
  EXPECT_EQ(job.plan(7, {0, 1})->end, 11U);
  EXPECT_EQ(changed.plan(7, {0, 1})->end, 13U);
  EXPECT_EQ(changed.plan(0, {0, 1})->end, job.plan(0, {0, 1})->end);
  EXPECT_EQ(changed.json(), job.json());
}

TEST(JobTest, EpochsAreTheOrders) {
  const Job job = make();
  EXPECT_EQ(job.epoch(19), 0U);
  EXPECT_EQ(job.epoch(20), 1U);
  EXPECT_EQ(job.describe(40), "epoch 2, position 40, step 10: the run is over");
  EXPECT_EQ(job.describe(400),
            "epoch 2, position 400, step 10, beyond the last epoch, which ends at position 40: the run is over");
  EXPECT_EQ(job.epoch(400), 2U);
}

}  // namespace
}  // namespace penstock
