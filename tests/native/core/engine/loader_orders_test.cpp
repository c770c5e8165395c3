// A loader over orders with stages, and of two sources: no batch crosses a stage's end, before and after a resume;
// which source a batch consists of is the order's to say.
#include "tests/native/core/engine/loader_fixture.h"
#include "tests/native/message_of.h"

namespace penstock::testing {
namespace {

// Epochs end at 23 and 46: inside the third stage, where a batch may go on, and at the end of the run. The second stage
// is shorter than a batch.
const std::vector<Stage> kStages{{0, 0}, {7, 0}, {10, 0}, {33, 0}, {44, 0}};

LoaderOptions staged(const Case& setup) {
  return options_of(setup, std::make_shared<StagedOrder>(setup.count, kStages), {format_of(setup, setup.window)});
}

TEST(Stages, RestoreAtEveryStepRepeatsTheRest) {
  for (Case& setup : cases(each(&Case::window, {5, 0}), each(&Case::per_epoch, {false, true}),
                           each(&Case::tail, {Tail::Pad, Tail::Drop, Tail::Short}),
                           each(&Case::skip, {Ranges{}, Ranges{{5, 12}, {20, 21}, {31, 44}}}))) {
    setup.late = setup.per_epoch;
    expect_restores_at_every_step(staged(setup));
  }
}

TEST(Stages, OtherRanksTakeUpARunAtEveryStep) {
  const Case setup{.skip = {{5, 12}}};
  Loader whole(staged(setup));
  const std::vector<Seen> all = rest_of_run(whole);
  whole.seek(0);
  for (std::size_t step = 0; step < all.size(); ++step, next(whole)) {
    Case half = setup;
    half.world_size = 2;
    half.rank = step % 2;
    Loader loader(staged(half));
    loader.load(whole.state(), OnMismatch::Refuse);
    const std::vector<Seen> later = rest_of_run(loader);
    ASSERT_EQ(later.size(), all.size() - step);
    for (std::size_t i = 0; i < later.size(); ++i) {
      const Seen& expected = all[step + i];
      EXPECT_EQ(later[i].end, expected.end);
      EXPECT_EQ(later[i].indices, (std::vector{expected.indices[half.rank], expected.indices[half.rank + 2]}));
    }
  }
}

TEST(Stages, NoBatchCrossesAStagesEndWhateverTheSizeThatIsSet) {
  Loader loader(staged({}));
  next(loader);
  loader.set_global_batch_size(30);
  std::vector<std::uint64_t> found;
  for (const Seen& seen : rest(loader)) found.push_back(seen.end);
  EXPECT_EQ(found, (std::vector<std::uint64_t>{7, 10, 33, 44, 46}));
}

// --- two sources

/// Two sources with rows of these many records (0: documents), told apart by their records.
LoaderOptions two_sources(const Case& setup, std::uint64_t window, std::uint64_t other_window,
                          std::vector<Stage> stages = {{0, 0}, {9, 1}, {11, 0}, {30, 1}}, bool ends = true) {
  auto order = std::make_shared<StagedOrder>(setup.count, std::move(stages), ends);
  return options_of(setup, std::move(order), {format_of(setup, window), format_of(setup, other_window, 1'000'000)});
}

/// How the sources' rows may differ: in length, or in having one at all.
const std::vector<std::pair<std::uint64_t, std::uint64_t>> kShapes{{5, 3}, {3, 5}, {5, 0}, {0, 3}, {5, 5}, {0, 0}};

TEST(Sources, BatchesOfOneSourceEachAreWhatItHoldsInItsShape) {
  for (const auto& [window, other] : kShapes) {
    for (const Case& setup : cases(each(&Case::threads, {1, 5}), each(&Case::prefetch, {1, 7}),
                                   each(&Case::lends, {false, true}), each(&Case::late, {false, true}))) {
      SCOPED_TRACE(describe(setup));
      const LoaderOptions options = two_sources(setup, window, other);
      Loader loader(options);
      std::vector<std::uint64_t> of_source(2);
      std::vector<std::shared_ptr<Batch>> held;  // recycled only later, by batches of another shape
      while (auto batch = next(loader)) {
        const std::uint32_t source = batch->picks[0].source;
        EXPECT_EQ(batch->format, &(*options.formats)[source]);
        expect_right(*batch, options.job->order());
        of_source[source] += batch->plan.valid;
        held.push_back(std::move(batch));
        if (held.size() > 2) held.erase(held.begin());
      }
      EXPECT_EQ(of_source, (std::vector<std::uint64_t>{9 + 19, 2 + 16}));
    }
  }
}

TEST(Sources, RestoreAtEveryStepRepeatsTheRest) {
  for (const auto& [window, other] : kShapes) {
    for (const bool per_epoch : {false, true}) {
      const Case setup{.per_epoch = per_epoch, .skip = {{5, 10}, {44, 46}}};
      expect_restores_at_every_step(two_sources(setup, window, other));
    }
  }
}

TEST(Sources, SourcesOfOneShapeMeetInABatch) {
  for (const std::uint64_t window : {5, 0}) {
    const LoaderOptions options =
        two_sources({}, window, window, {{0, 1}, {1, 0}, {2, 1}, {6, 0}, {13, 1}, {25, 0}}, false);
    Loader loader(options);
    std::uint64_t batches = 0;
    for (; auto batch = next(loader); ++batches) expect_right(*batch, options.job->order());
    EXPECT_EQ(batches, 12U);
    expect_restores_at_every_step(options);
  }
}

TEST(Sources, SourcesOfDifferentShapeInOneBatchAreRefusedInWords) {
  for (const auto& [window, other] : std::vector(kShapes.begin(), kShapes.begin() + 4)) {
    const LoaderOptions options = two_sources({}, window, other, {{0, 0}, {10, 1}, {20, 0}}, false);
    Loader loader(options);
    for (int step = 0; step < 2; ++step) expect_right(*next(loader), options.job->order());
    for (int attempt = 0; attempt < 2; ++attempt) {  // it stays so, and moves nothing
      EXPECT_EQ(message_of([&] { next(loader); }, ErrorKind::InvalidArgument),
                "sources 0 and 1 meet in one batch, but their rows differ in shape");
      EXPECT_EQ(loader.position(), 8U);
    }
    loader.seek(12);  // batches of one source each
    for (int step = 0; step < 3; ++step) expect_right(*next(loader), options.job->order());
  }
}

}  // namespace
}  // namespace penstock::testing
