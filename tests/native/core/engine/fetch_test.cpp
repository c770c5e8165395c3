// Rows that share fetches: the same batches as without, in fewer reads, within the memory that is allowed.
#include "core/engine/fetch.h"

#include "tests/native/core/engine/loader_fixture.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace penstock::testing {
namespace {

std::vector<Seen> without_fetches(Case setup) {
  setup.fetch = 1;
  setup.behaviour = std::make_shared<Behaviour>();
  setup.threads = setup.prefetch = 1;
  Loader loader(options_of(setup));
  return rest_of_run(loader);
}

TEST(Fetch, GivesTheBatchesThatSingleRowsGive) {
  for (const std::uint64_t window : {5, 0}) {
    for (const std::uint64_t fetch : {2, 3, 8, 23, 100}) {
      for (const std::uint64_t batch : {1, 4, 6, 30}) {
        for (const bool per_epoch : {false, true}) {
          for (const bool late : {false, true}) {
            for (const bool lends : {false, true}) {
              Case setup;
              setup.window = window;
              setup.fetch = fetch;
              setup.batch = batch;
              setup.per_epoch = per_epoch;
              setup.lends = lends;
              setup.behaviour->late = late;
              setup.skip = {{5, 9}, {30, 31}};
              Loader loader(options_of(setup));
              ASSERT_EQ(rest_of_run(loader), without_fetches(setup))
                  << "window " << window << " fetch " << fetch << " batch " << batch << " late " << late;
            }
          }
        }
      }
    }
  }
}

TEST(Fetch, RanksReadTheirOwnRowsAlone) {
  for (const std::uint64_t world : {2, 3}) {
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      Case setup;
      setup.batch = 6;
      setup.rank = rank;
      setup.world_size = world;
      setup.fetch = 8;
      setup.epochs = 1;
      Loader loader(options_of(setup));
      EXPECT_EQ(rest_of_run(loader), without_fetches(setup));
      std::uint64_t rows = 0;
      for (std::uint64_t p = 0; p < 23; ++p) rows += p % 6 % world == rank ? 1 : 0;
      EXPECT_LE(setup.behaviour->bytes, rows * 5 * 4) << "what no row of this rank needs is not read";
    }
  }
}

TEST(Fetch, NeighboursAreOneRequest) {
  Case setup;
  setup.count = 1000;
  setup.fetch = 256;
  setup.batch = 8;
  setup.epochs = 1;
  setup.max_bytes = 64 << 20;
  setup.behaviour->near_bytes = 64;
  Loader loader(options_of(setup));
  EXPECT_EQ(rest_of_run(loader), without_fetches(setup));
  EXPECT_EQ(setup.behaviour->runs, 4U + 4U)
      << "a run for each fetch, and one for what odd rows read in their second round";
}

TEST(Fetch, RestoreAtEveryStepRepeatsTheRest) {
  for (const std::uint64_t window : {5, 0}) {
    Case setup;
    setup.window = window;
    setup.fetch = 7;
    setup.skip = {{3, 5}};
    expect_restores_at_every_step(options_of(setup));
  }
}

TEST(Fetch, WhatDoesNotFitIsReadInParts) {
  for (const std::uint64_t window : {500, 0}) {
    Case setup;
    setup.count = 64;
    setup.window = window;
    setup.fetch = 64;
    setup.batch = 4;
    setup.max_bytes = 1;  // prefetch + 2 batches, and a batch of rows
    Loader loader(options_of(setup));
    EXPECT_EQ(rest_of_run(loader), without_fetches(setup));
  }
}

TEST(Fetch, SeeksAndBatchSizesInTheMiddleOfAFetch) {
  Case setup;
  setup.fetch = 16;
  setup.behaviour->late = true;
  Case plain = setup;
  plain.fetch = 1;
  Loader fetching(options_of(setup));
  Loader reference(options_of(plain));
  for (const std::uint64_t position : {5, 0, 21, 22, 3}) {
    for (Loader* loader : {&fetching, &reference}) {
      loader->seek(position);
      loader->begin();
    }
    for (int step = 0; step < 3; ++step) {
      const auto a = next(fetching);
      const auto b = next(reference);
      ASSERT_TRUE(a && b);
      EXPECT_EQ(look(*a), look(*b)) << position;
    }
    fetching.set_global_batch_size(position + 1);
    reference.set_global_batch_size(position + 1);
    EXPECT_EQ(look(*next(fetching)), look(*next(reference)));
  }
}

TEST(Fetch, AnErrorIsRaisedAtItsBatchAndIsReadAgain) {
  for (const bool late : {false, true}) {
    for (const std::uint64_t window : {5, 0}) {
      Case setup;
      setup.window = window;
      setup.fetch = 23;
      setup.epochs = 1;
      setup.behaviour->late = late;
      setup.behaviour->fail_offset = window > 0 ? 10 * 5 * 4 : 10 * 4 * 4;
      setup.behaviour->failures = 1;
      SCOPED_TRACE(::testing::Message() << "window " << window << " late " << late);
      const std::vector<Seen> expected = without_fetches(setup);
      Loader loader(options_of(setup));
      for (std::size_t step = 0; step < 2; ++step) EXPECT_EQ(look(*next(loader)), expected[step]);
      EXPECT_THROW(next(loader), Error);
      EXPECT_EQ(loader.position(), 8U);
      EXPECT_EQ(rest(loader), std::vector<Seen>(expected.begin() + 2, expected.end()));
    }
  }
}

TEST(Fetch, ClosingInTheMiddleEndsWhatIsUnderWay) {
  for (int round = 0; round < 300; ++round) {
    Case setup;
    setup.window = round % 2 == 0 ? 5 : 0;
    setup.fetch = 3 + static_cast<std::uint64_t>(round) % 20;
    setup.behaviour->late = round % 3 == 0;
    Loader loader(options_of(setup));
    for (int step = 0; step < round % 4; ++step) next(loader);
    if (round % 5 == 0) loader.seek(7);
    if (round % 7 == 0) next(loader);
    loader.close();
  }
}

}  // namespace
}  // namespace penstock::testing
