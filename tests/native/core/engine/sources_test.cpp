// A loader over two sources: which of them a batch consists of is the order's to say.
#include "tests/native/core/engine/loader_fixture.h"

#include <string>

namespace penstock::testing {
namespace {

constexpr std::uint32_t kSecondFrom = 1'000'000;  // the first record of source 1

/// Two sources with rows of these many records (0: documents).
LoaderOptions two_sources(const Case& setup, std::uint64_t window, std::uint64_t other_window,
                          std::shared_ptr<const Order> order) {
  return options_of(setup, std::move(order), {format_of(setup, window), format_of(setup, other_window, kSecondFrom)});
}

/// Records of one observation.
std::vector<std::uint32_t> records_of(const Pick& pick, std::uint64_t window) {
  const std::uint64_t first = pick.index * (window > 0 ? window : 4) + (pick.source == 1 ? kSecondFrom : 0);
  std::vector<std::uint32_t> records(window > 0 ? window : MemorySource::document_length(pick.index));
  for (std::size_t i = 0; i < records.size(); ++i) records[i] = static_cast<std::uint32_t>(first + i);
  return records;
}

/// Whether the batch holds what stands at its positions, and nothing in its padding.
void expect_right(Batch& batch, const LoaderOptions& options) {
  const Seen seen = look(batch);
  std::vector<std::uint32_t> records;
  std::vector<std::int64_t> first_column;  // windows: all but the last record; documents: all
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    Pick pick;
    std::vector<std::uint32_t> row(batch.format->shape.ragged ? 0 : batch.format->shape.length);
    if (i < batch.plan.valid) {
      options.job->order().pick(batch.plan.position + i, 1, std::span(&pick, 1));
      EXPECT_EQ(batch.picks[i], pick);
      row = records_of(pick, (*options.formats)[pick.source].shape.length);
    }
    records.insert(records.end(), row.begin(), row.end());
    first_column.insert(first_column.end(), row.begin(), row.end() - (batch.format->shape.ragged ? 0 : 1));
  }
  EXPECT_EQ(seen.records, records) << "at " << seen.position;
  EXPECT_EQ(seen.columns.at(0), first_column) << "at " << seen.position;
}

std::shared_ptr<const Order> one_source_a_stage() {
  return std::make_shared<StagedOrder>(23, std::vector<Stage>{{0, 0}, {9, 1}, {11, 0}, {30, 1}});
}

/// How the sources' rows may differ: in length, or in having one at all.
const std::vector<std::pair<std::uint64_t, std::uint64_t>> kShapes{{5, 3}, {3, 5}, {5, 0}, {0, 3}, {5, 5}, {0, 0}};

TEST(Sources, BatchesOfOneSourceEachAreWhatItHoldsInItsShape) {
  for (const auto& [window, other] : kShapes) {
    for (const bool late : {false, true}) {
      for (const bool lends : {false, true}) {
        Case setup;
        setup.lends = lends;
        setup.behaviour->late = late;
        const LoaderOptions options = two_sources(setup, window, other, one_source_a_stage());
        Loader loader(options);
        std::vector<std::uint64_t> of_source(2);
        std::vector<std::shared_ptr<Batch>> held;  // recycled only later, by batches of another shape
        while (auto batch = next(loader)) {
          const std::uint32_t source = batch->picks[0].source;
          EXPECT_EQ(batch->format, &(*options.formats)[source]);
          expect_right(*batch, options);
          of_source[source] += batch->plan.valid;
          held.push_back(std::move(batch));
          if (held.size() > 2) held.erase(held.begin());
        }
        EXPECT_EQ(of_source, (std::vector<std::uint64_t>{9 + 19, 2 + 16}));
      }
    }
  }
}

TEST(Sources, ThreadsAndPrefetchChangeNothing) {
  for (const auto& [window, other] : kShapes) {
    Case plain;
    plain.threads = plain.prefetch = 1;
    Loader reference(two_sources(plain, window, other, one_source_a_stage()));
    const std::vector<Seen> expected = rest(reference);
    for (const unsigned threads : {2, 5}) {
      Case setup;
      setup.threads = threads;
      setup.prefetch = 7;  // batches of both sources are under way at once
      setup.behaviour->late = true;
      Loader loader(two_sources(setup, window, other, one_source_a_stage()));
      EXPECT_EQ(rest(loader), expected);
    }
  }
}

TEST(Sources, RestoreAtEveryStepRepeatsTheRest) {
  for (const auto& [window, other] : kShapes) {
    for (const bool per_epoch : {false, true}) {
      Case setup;
      setup.per_epoch = per_epoch;
      setup.skip = {{5, 10}, {44, 46}};
      expect_restores_at_every_step(two_sources(setup, window, other, one_source_a_stage()));
    }
  }
}

TEST(Sources, SourcesOfOneShapeMeetInABatch) {
  for (const std::uint64_t window : {5, 0}) {
    const auto order =
        std::make_shared<StagedOrder>(23, std::vector<Stage>{{0, 1}, {1, 0}, {2, 1}, {6, 0}, {13, 1}, {25, 0}}, false);
    const LoaderOptions options = two_sources(Case{}, window, window, order);
    Loader loader(options);
    std::uint64_t batches = 0;
    for (; auto batch = next(loader); ++batches) expect_right(*batch, options);
    EXPECT_EQ(batches, 12U);
    expect_restores_at_every_step(options);
  }
}

TEST(Sources, SourcesOfDifferentShapeInOneBatchAreRefusedInWords) {
  for (const auto& [window, other] : {std::pair{5, 3}, {3, 5}, {5, 0}, {0, 3}}) {
    const auto order = std::make_shared<StagedOrder>(23, std::vector<Stage>{{0, 0}, {10, 1}, {20, 0}}, false);
    const LoaderOptions options = two_sources(Case{}, window, other, order);
    Loader loader(options);
    for (int step = 0; step < 2; ++step) expect_right(*next(loader), options);
    for (int attempt = 0; attempt < 2; ++attempt) {  // it stays so, and moves nothing
      try {
        next(loader);
        FAIL() << "a batch of rows of " << window << " and of " << other << " records";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
        EXPECT_STREQ(error.what(), "sources 0 and 1 meet in one batch, but their rows differ in shape");
      }
      EXPECT_EQ(loader.position(), 8U);
    }
    loader.seek(12);  // batches of source 1 alone
    expect_right(*next(loader), options);
    expect_right(*next(loader), options);
    expect_right(*next(loader), options);
  }
}

TEST(Sources, AnErrorOfOneSourceIsRaisedAtItsBatch) {
  for (const bool late : {false, true}) {
    Case good;
    Case bad;
    bad.behaviour->late = late;
    bad.behaviour->fail_offset = 10 * 3 * 4;  // observation 10 of source 1, and no row of source 0 begins there
    bad.behaviour->failures = 1;
    auto formats = std::make_shared<BatchFormats>();
    formats->push_back(format_of(good, 7));
    formats->push_back(format_of(bad, 3, kSecondFrom));
    LoaderOptions options = two_sources(good, 7, 3, one_source_a_stage());
    Loader reference(options);
    const std::vector<Seen> expected = rest(reference);
    options.formats = formats;
    Loader loader(options);
    for (int step = 0; step < 3; ++step) EXPECT_EQ(look(*next(loader)), expected[static_cast<std::size_t>(step)]);
    EXPECT_THROW(next(loader), Error);
    EXPECT_EQ(loader.position(), 9U);
    EXPECT_EQ(rest(loader), std::vector<Seen>(expected.begin() + 3, expected.end()));
  }
}

}  // namespace
}  // namespace penstock::testing
