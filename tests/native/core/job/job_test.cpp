#include "core/job/job.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace penstock {
namespace {

/// Position p is observation p mod 10 of source p div 10 mod 2; stages end at 25.
class TwoSources final : public Order {
 public:
  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t p = first + i * stride;
      out[i] = {p % 10, p, static_cast<std::uint32_t>(p / 10 % 2), static_cast<std::uint32_t>(p / 20)};
    }
  }
  [[nodiscard]] std::uint64_t epoch_size() const override { return 20; }
  [[nodiscard]] std::uint64_t end(std::uint64_t position) const override { return position < 25 ? 25 : kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return position + 1; }
  [[nodiscard]] std::string identity(std::uint64_t) const override { return R"({"name":"two"})"; }
};

const std::vector<SourceIdentity> kSources{{"aa", 1, 10, R"({"kind":"windows"})", ""},
                                           {"bb", 1, 10, R"({"kind":"windows"})", ""}};

Job make(std::uint64_t batch = 4) {
  CursorOptions options;
  options.epochs = 2;
  options.skip = {{5, 7}};
  options.schedule = {{0, batch}};
  return {std::make_shared<TwoSources>(), kSources, std::move(options)};
}

std::vector<Pick> picks_of(const Job& job, const BatchPlan& plan) {
  std::vector<Pick> picks(plan.valid);
  job.pick(plan, picks);
  return picks;
}

TEST(JobTest, RanksTakeTurnsInWhatOneRankTakes) {
  const Job job = make();
  std::uint64_t position = 0;
  std::vector<std::uint64_t> seen;
  while (const auto whole = job.plan(position, {0, 1})) {
    const std::vector<Pick> all = picks_of(job, *whole);
    for (const std::uint64_t world : {2U, 4U}) {
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        const auto part = job.plan(position, {rank, world});
        ASSERT_TRUE(part);
        EXPECT_EQ(part->end, whole->end);
        std::vector<Pick> mine;
        for (std::size_t i = rank; i < all.size(); i += world) mine.push_back(all[i]);
        EXPECT_EQ(picks_of(job, *part), mine);
      }
    }
    for (const Pick& pick : all) seen.push_back(pick.fetch);
    EXPECT_FALSE(whole->position < 25 && whole->end > 25) << "a batch crosses the stage's end";
    position = whole->end;
  }
  std::vector<std::uint64_t> wanted;
  for (std::uint64_t p = 0; p < 40; ++p) {
    if (p < 5 || p >= 7) wanted.push_back(p);
  }
  EXPECT_EQ(seen, wanted);
}

TEST(JobTest, AStateGoesOnWhereItWasTakenAndAnothersDoesNot) {
  const Job job = make();
  const State state = job.state(12);
  EXPECT_EQ(job.load(state, OnMismatch::Refuse).message, "resumes at epoch 0, position 12, step 3");
  const Job other(std::make_shared<TwoSources>(), std::span(kSources).first(1), make().cursor().options());
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
