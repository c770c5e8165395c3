// What is planned ahead: how much, in which order, and what becomes of it when the position moves.
#include "core/engine/prefetch.h"

#include "core/base/error.h"
#include "tests/native/core/engine/loader_fixture.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace penstock::testing {
namespace {

std::shared_ptr<Batch> take(Prefetch& prefetch) {
  prefetch.plan();
  if (prefetch.front() == nullptr) return nullptr;
  while (prefetch.settle() != Batch::Phase::Ready) prefetch.wait(std::chrono::milliseconds(50));
  return prefetch.take();
}

TEST(Prefetch, KeepsAsManyBatchesPlannedAsWereAskedFor) {
  Case setup;
  setup.prefetch = 3;
  Prefetch prefetch(options_of(setup));
  EXPECT_EQ(prefetch.front(), nullptr) << "nothing before it is asked for";
  prefetch.plan();
  EXPECT_EQ(prefetch.usage().batches, 3U);
  const auto held = take(prefetch);
  prefetch.plan();
  EXPECT_EQ(prefetch.usage().batches, 4U) << "beside the one that is held";
}

TEST(Prefetch, BatchesComeInOrderToTheEndOfTheRun) {
  for (const std::uint64_t window : {5, 0}) {
    Case setup;
    setup.window = window;
    setup.lends = window == 0;
    const LoaderOptions options = options_of(setup);
    Prefetch prefetch(options);
    std::uint64_t position = 0;
    while (const auto batch = take(prefetch)) {
      EXPECT_EQ(batch->plan.position, position);
      position = batch->plan.end;
    }
    EXPECT_EQ(position, options.job->cursor().run_end());
  }
}

TEST(Prefetch, ARestartDropsWhatIsPlannedAndGoesOnThereByTheNewJob) {
  Case setup;
  const LoaderOptions options = options_of(setup);
  Prefetch prefetch(options);
  take(prefetch);
  prefetch.restart(std::make_shared<const Job>(options.job->with_batch_size(8, 3)), 8);
  EXPECT_EQ(prefetch.front(), nullptr);
  const auto batch = take(prefetch);
  EXPECT_EQ(batch->plan.position, 8U);
  EXPECT_EQ(batch->plan.end, 11U);
}

TEST(Prefetch, WithoutMemoryNothingIsPlannedUntilABatchIsLetGo) {
  Case setup;
  setup.max_bytes = 0;
  setup.prefetch = 1;
  Prefetch prefetch(options_of(setup));
  std::vector<std::shared_ptr<Batch>> held;
  while (auto batch = take(prefetch)) held.push_back(std::move(batch));
  EXPECT_EQ(held.size(), 3U) << "prefetch + 2 always fit";
  while (prefetch.expects_memory()) prefetch.wait(std::chrono::milliseconds(1));
  expect_error([&] { prefetch.raise_out_of_memory(); }, ErrorKind::InvalidArgument, "3 batches are held");
  held.pop_back();
  EXPECT_NE(take(prefetch), nullptr);
}

}  // namespace
}  // namespace penstock::testing
