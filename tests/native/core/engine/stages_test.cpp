// An order with stages, through the loader: no batch crosses a stage's end, on any rank, before and after a resume.
#include "tests/native/core/engine/loader_fixture.h"

#include <map>
#include <string>

namespace penstock::testing {
namespace {

// Epochs end at 23 and 46: inside the third stage, where a batch may go on, and at the end of the run. The second stage
// is shorter than a batch.
const std::vector<Stage> kStages{{0, 0}, {7, 0}, {10, 0}, {33, 0}, {44, 0}};
constexpr std::uint64_t kEnd = 46;

LoaderOptions staged(const Case& setup) {
  LoaderOptions options = options_of(setup);
  options.job = job_of(setup, std::make_shared<StagedOrder>(setup.count, kStages), *options.formats);
  return options;
}

std::uint64_t stage_of(std::uint64_t position) {
  std::uint64_t stage = 0;
  while (stage + 1 < kStages.size() && kStages[stage + 1].begin <= position) ++stage;
  return stage;
}

/// What each stage, or each epoch's part of it if `per_epoch`, holds that no skip leaves out, cut into batches.
std::vector<std::vector<std::int64_t>> expected_batches(const Case& setup) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::int64_t>> segments;
  for (std::uint64_t position = 0; position < kEnd; ++position) {
    bool skipped = false;
    for (const auto& [begin, end] : setup.skip) skipped = skipped || (begin <= position && position < end);
    const std::uint64_t epoch = setup.per_epoch ? position / setup.count : 0;
    const auto index = static_cast<std::int64_t>(position % setup.count);
    if (!skipped) segments[{stage_of(position), epoch}].push_back(index);
  }
  std::vector<std::vector<std::int64_t>> batches;
  for (const auto& [segment, indices] : segments) {
    for (std::size_t first = 0; first < indices.size(); first += setup.batch) {
      std::vector<std::int64_t> batch(setup.batch, -1);
      const std::size_t count = std::min<std::size_t>(setup.batch, indices.size() - first);
      if (count < setup.batch && setup.tail == Tail::Drop) break;
      std::copy_n(indices.begin() + static_cast<std::ptrdiff_t>(first), count, batch.begin());
      batches.push_back(batch);
    }
  }
  return batches;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::uint64_t window : {5, 0}) {
    for (const bool per_epoch : {false, true}) {
      for (const Tail tail : {Tail::Pad, Tail::Drop}) {
        for (const Ranges& skip : {Ranges{}, Ranges{{5, 12}, {20, 21}, {31, 44}}}) {
          Case setup;
          setup.window = window;
          setup.per_epoch = per_epoch;
          setup.tail = tail;
          setup.skip = skip;
          setup.behaviour->late = per_epoch;
          all.push_back(setup);
        }
      }
    }
  }
  return all;
}

TEST(Stages, NoBatchCrossesAStagesEnd) {
  for (const Case& setup : cases()) {
    Loader loader(staged(setup));
    std::vector<std::vector<std::int64_t>> batches;
    std::uint64_t before = 0;
    for (const Seen& seen : rest_of_run(loader)) {
      EXPECT_GE(seen.position, before);
      EXPECT_EQ(stage_of(seen.position), stage_of(seen.end - 1)) << seen.position << " to " << seen.end;
      before = seen.end;
      batches.push_back(seen.indices);
    }
    EXPECT_EQ(loader.position(), kEnd);
    EXPECT_EQ(batches, expected_batches(setup));
  }
}

TEST(Stages, RanksAgreeOnEveryBatchAndShareItAmongThem) {
  for (Case setup : cases()) {
    Loader alone(staged(setup));
    const std::vector<Seen> all = rest_of_run(alone);
    for (const std::uint64_t world_size : {2, 4}) {
      setup.world_size = world_size;
      for (setup.rank = 0; setup.rank < world_size; ++setup.rank) {
        Loader loader(staged(setup));
        const std::vector<Seen> ours = rest_of_run(loader);
        ASSERT_EQ(ours.size(), all.size());
        for (std::size_t step = 0; step < all.size(); ++step) {
          EXPECT_EQ(ours[step].position, all[step].position);
          EXPECT_EQ(ours[step].end, all[step].end);
          for (std::size_t i = 0; i < ours[step].indices.size(); ++i) {
            EXPECT_EQ(ours[step].indices[i], all[step].indices[i * world_size + setup.rank]);
          }
        }
      }
    }
    setup.rank = 0;
    setup.world_size = 1;
  }
}

TEST(Stages, RestoreAtEveryStepRepeatsTheRest) {
  for (const Case& setup : cases()) expect_restores_at_every_step(staged(setup));
}

TEST(Stages, OtherRanksTakeUpARunAtEveryStep) {
  Case setup;
  setup.skip = {{5, 12}};
  Loader whole(staged(setup));
  const std::vector<Seen> all = rest_of_run(whole);
  whole.seek(0);
  for (std::size_t step = 0; step < all.size(); ++step, next(whole)) {
    Case half = setup;
    half.world_size = 2;
    half.rank = step % 2;
    Loader loader(staged(half));
    loader.load(whole.state(), OnMismatch::Refuse);
    for (std::size_t later = step; later < all.size(); ++later) {
      const auto batch = next(loader);
      ASSERT_TRUE(batch) << "step " << later;
      const Seen seen = look(*batch);
      EXPECT_EQ(seen.end, all[later].end);
      EXPECT_EQ(seen.indices, (std::vector{all[later].indices[half.rank], all[later].indices[half.rank + 2]}));
    }
    EXPECT_EQ(next(loader), nullptr);
  }
}

TEST(Stages, ABatchSizeSetInAStageStillEndsWithIt) {
  Loader loader(staged(Case{}));
  next(loader);
  loader.set_global_batch_size(30);
  const std::vector<std::uint64_t> ends{7, 10, 33, 44, 46};
  std::vector<std::uint64_t> found;
  for (const Seen& seen : rest(loader)) found.push_back(seen.end);
  EXPECT_EQ(found, ends);
}

}  // namespace
}  // namespace penstock::testing
