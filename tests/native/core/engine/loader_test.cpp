#include "tests/native/core/engine/loader_fixture.h"
#include "tests/native/message_of.h"

#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <new>
#include <utility>

namespace penstock::testing {
namespace {

TEST(Loader, GivesWhatItsSourceHoldsInOrderAndTellsWhatWasDelivered) {
  for (const unsigned miss_every : {1U, 3U, 1'000'000U}) {
    for (const Case& setup :
         cases(each(&Case::window, {5, 0}), each(&Case::threads, {1, 2, 5}), each(&Case::prefetch, {1, 3, 7}),
               each(&Case::lends, {false, true}), each(&Case::late, {false, true}))) {
      SCOPED_TRACE(describe(setup));
      setup.behaviour->miss_every = miss_every;
      const LoaderOptions options = options_of(setup);
      Loader loader(options);
      std::uint64_t position = 0;
      EXPECT_EQ(loader.state().position, 0U);
      while (const auto batch = next(loader)) {
        EXPECT_EQ(batch->plan.position, position);
        expect_right(*batch, options.job->order());
        position = batch->plan.end;
        EXPECT_EQ(loader.state().position, position) << "others were prefetched";
      }
      EXPECT_EQ(position, 46U);
    }
  }
}

TEST(Loader, SlowRowsOfABatchAreReadByAllThreadsAtOnce) {
  const Case setup{.batch = 4, .threads = 4, .prefetch = 1};
  Loader loader(options_of(setup));
  // The next batch is ready then, all threads sleep, and no pace is known: where the first poll() found a batch
  // already, a consumer that takes one each 200 ms would want one thread.
  const bool was_fast = loader.poll() != nullptr;
  std::this_thread::sleep_for(std::chrono::milliseconds(was_fast ? 1'100 : 200));
  setup.behaviour->gather = 4;
  ASSERT_TRUE(loader.poll());  // plans one more; the consumer then works and wakes nobody
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (setup.behaviour->gathered < 4 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(setup.behaviour->gathered, 4U) << "the thread that asks the job wakes the others before it reads";
}

TEST(Loader, AConsumerThatWaitsReadsWhatIsAtHandAndNothingElse) {
  const Case plain{.count = 250, .batch = 8};
  const std::vector<Seen> expected = plain_run(plain);
  for (const unsigned miss_every : {0U, 1U, 2U, 9U, 1'000'000U}) {  // 0: a store where nothing is at hand
    for (const unsigned threads : {1U, 3U}) {
      Case setup = plain;
      setup.threads = threads;
      setup.behaviour = std::make_shared<Behaviour>();
      setup.behaviour->nothing_at_hand = miss_every == 0;
      setup.behaviour->miss_every = miss_every;
      setup.behaviour->late = true;  // the threads are slow, so the consumer waits
      setup.behaviour->delay = std::chrono::microseconds(50);
      Loader loader(options_of(setup));
      ASSERT_EQ(rest(loader), expected) << miss_every << " " << threads;
      EXPECT_EQ(setup.behaviour->asked > 0, miss_every > 0);
      EXPECT_EQ(setup.behaviour->hits > 0, miss_every > 1);
    }
  }
}

// A rank's own way to read: the files name one store, the loader reads through another.
TEST(Loader, FilesAreReadThroughTheStoreThatIsChosen) {
  const Case setup;
  LoaderOptions options = options_of(setup);
  const auto other = std::make_shared<Behaviour>();
  MemorySource same(setup.count, setup.window, other);
  options.through = [&](ByteStore& files) -> ByteStore& { return &files == &same.store() ? files : same.store(); };
  Loader loader(options);
  EXPECT_EQ(rest(loader), plain_run(setup));
  EXPECT_EQ(setup.behaviour->channels, 0U);
  EXPECT_GT(other->channels, 0U);
}

TEST(Loader, RestoreAtEveryStepRepeatsTheRest) {
  for (Case& setup :
       cases(each(&Case::window, {5, 0}), each(&Case::per_epoch, {false, true}),
             each(&Case::tail, {Tail::Pad, Tail::Drop, Tail::Short}), each(&Case::skip, {Ranges{{5, 9}, {44, 46}}}),
             each(&Case::fetch, {1, 7}), each(&Case::lends, {false, true}), each(&Case::late, {false, true}))) {
    SCOPED_TRACE(describe(setup));
    setup.behaviour->miss_every = 3;
    expect_restores_at_every_step(options_of(setup));
  }
}

TEST(Loader, EndsEachForAtItsEpochsEndAndGivesNothingMoreUntilItIsMoved) {
  Loader loader(options_of({.epochs = 3, .per_epoch = true}));
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    loader.begin();
    EXPECT_EQ(rest(loader).size(), 6U);
    EXPECT_EQ(loader.position(), (epoch + 1) * 23);
    EXPECT_EQ(next(loader), nullptr);  // nothing until the next for
  }
  loader.begin();
  EXPECT_EQ(next(loader), nullptr);
  EXPECT_EQ(loader.position(), 69U);
  loader.seek(0);
  EXPECT_EQ(rest(loader).size(), 6U);
}

TEST(Loader, AnErrorIsRaisedAtItsBatchWhichIsThenReadAgain) {
  for (const Case& setup : cases(each(&Case::window, {5, 0}), each(&Case::epochs, {1}), each(&Case::fetch, {1, 23}),
                                 each(&Case::prefetch, {6}), each(&Case::late, {false, true}))) {
    SCOPED_TRACE(describe(setup));
    const std::vector<Seen> expected = plain_run(setup);
    setup.behaviour->fail_offset = setup.window > 0 ? 10 * 5 * 4 : 10 * 4 * 4;  // observation 10: row 2 of batch 2
    setup.behaviour->failures = 1;
    Loader loader(options_of(setup));
    for (std::size_t step = 0; step < 2; ++step) EXPECT_EQ(look(*next(loader)), expected[step]);
    expect_error([&] { next(loader); }, ErrorKind::IoError, setup.window > 0 ? "offset 200" : "offset 160");
    EXPECT_EQ(loader.position(), 8U);
    EXPECT_EQ(rest(loader), std::vector<Seen>(expected.begin() + 2, expected.end()));
  }
}

/// `before` is told how often memory was lent, and may throw.
LoaderOptions lending(const Case& setup, std::function<void(int)> before) {
  LoaderOptions options = options_of(setup);
  options.lend = [before = std::move(before), lent = 0](Slab& slab, std::uint64_t bytes) mutable {
    before(lent);
    ++lent;
    lend_memory(slab, bytes);
  };
  return options;
}

TEST(Loader, ThatALaterBatchHasNoMemoryIsSaidAtItsPlaceAndForgottenWhenThePositionMoves) {
  for (Case& setup : cases(each(&Case::window, {5, 0}), each(&Case::prefetch, {1, 2, 3, 8}))) {
    // Documents are measured, and ask for memory, in the order of their batches.
    if (setup.window == 0) setup.threads = 1;
    for (const bool moves : {false, true}) {
      bool has_memory = false;
      Loader loader(lending(setup, [&](int lent) {
        if (!has_memory && lent == 2) throw std::bad_alloc();
      }));
      std::vector<Seen> seen{look(*next(loader))};
      if (moves) {
        loader.seek(0);
        seen.clear();
      } else {
        seen.push_back(look(*next(loader)));
      }
      for (int i = 0; i < 3 && !moves; ++i) {
        EXPECT_THROW(next(loader), std::bad_alloc);
        EXPECT_EQ(loader.position(), 8U);
      }
      has_memory = true;
      for (Seen& each : rest(loader)) seen.push_back(std::move(each));
      EXPECT_EQ(seen, plain_run(setup)) << describe(setup);
    }
  }
}

// An interrupt, say: it must not wait for the place of a batch.
TEST(Loader, WhatTheLenderThrowsOtherwiseIsThrownAtOnceAndNoBatchIsLost) {
  struct Interrupt {};
  for (const std::uint64_t window : {5, 0}) {
    for (const int at : {1, 3}) {  // while the first batches are planned, and as the first one is delivered
      const Case setup{.window = window, .prefetch = 3};
      bool is_interrupted = true;
      Loader loader(lending(setup, [&](int lent) {
        if (lent == at && std::exchange(is_interrupted, false)) throw Interrupt();
      }));
      std::vector<Seen> seen;
      unsigned interrupts = 0;
      while (interrupts == 0 || !loader.ended()) {
        try {
          if (const auto batch = next(loader)) seen.push_back(look(*batch));
        } catch (const Interrupt&) {
          ++interrupts;
          EXPECT_LE(seen.size(), static_cast<std::size_t>(window == 0 ? at : at / 3))
              << "before the batch that the memory was for";
        }
      }
      EXPECT_EQ(interrupts, 1U);
      EXPECT_EQ(seen, plain_run(setup));
    }
  }
}

TEST(Loader, ABatchThatNoMemoryHoldsIsRefusedWhenTheLoaderIsMadeAndWhenTheSizeIsSet) {
  for (const std::uint64_t window : {5, 0}) {
    for (const std::uint64_t size : {UINT64_MAX / 5, (std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 62,
                                     std::uint64_t{1} << 50, std::uint64_t{1} << 40, std::uint64_t{1} << 24}) {
      const LoaderOptions good = options_of({.window = window, .epochs = {}});
      LoaderOptions options = good;
      options.job = std::make_shared<Job>(options.job->with_batch_size(8, size));
      const auto expect_refusal = [&](const auto& action) {
        const std::string said = message_of(action, ErrorKind::InvalidArgument);
        EXPECT_NE(said.find("no memory for a batch of " + with_commas(size) + " rows"), std::string::npos) << said;
        EXPECT_NE(said.find("use a smaller batch size"), std::string::npos) << said;
      };
      expect_refusal([&] { const Loader loader(options); });
      Loader loader(good);
      EXPECT_EQ(next(loader)->plan.position, 0U);
      expect_refusal([&] { loader.set_global_batch_size(size); });
      EXPECT_EQ(next(loader)->plan.position, 4U) << "nothing has changed";
    }
  }
}

TEST(Loader, WhatIsPlannedIsReadThoughNobodyWaits) {
  Loader loader(options_of({.epochs = {}, .prefetch = 8, .max_bytes = 1}));
  std::vector<std::shared_ptr<Batch>> held;
  for (int i = 0; i < 10; ++i) held.push_back(next(loader));   // all that there is memory for
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the threads have nothing to do and sleep
  held.pop_back();
  std::shared_ptr<Batch> last;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!last && std::chrono::steady_clock::now() < end) last = loader.poll();  // which never waits
  EXPECT_NE(last, nullptr);
}

TEST(Loader, HeldBatchesKeepTheirContentBeyondTheLoaderAndTheirMemoryIsBounded) {
  auto loader = std::make_unique<Loader>(options_of({.epochs = {}, .max_bytes = 1}));  // but prefetch + 2 always fit
  std::vector<std::shared_ptr<Batch>> held;
  std::vector<Seen> seen;
  for (int i = 0; i < 5; ++i) {
    held.push_back(next(*loader));
    seen.push_back(look(*held.back()));
  }
  expect_error([&] { next(*loader); }, ErrorKind::InvalidArgument, "5 batches are held");
  EXPECT_LE(loader->usage().bytes, loader->limit_bytes());
  for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(look(*held[i]), seen[i]);
  held.resize(1);
  EXPECT_EQ(next(*loader)->plan.position, 5 * 4U) << "it can be asked again";
  loader.reset();
  EXPECT_EQ(look(*held[0]), seen[0]);
}

TEST(Loader, DocumentsThatArePlannedCountAsReadBeforeTheirLengthsAreKnown) {
  Case setup{.count = 24, .window = 0, .epochs = {}, .prefetch = 4};
  setup.behaviour->nothing_at_hand = true;
  Loader sample(options_of(setup));
  next(sample);
  setup.max_bytes = 8 * next(sample)->accounted_bytes;  // all batches are alike
  Loader loader(options_of(setup));
  std::vector<std::shared_ptr<Batch>> held;
  while (held.size() < 2) held.push_back(next(loader));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // 4 more are read
  setup.behaviour->gather = UINT_MAX;                          // reads have no end
  while (held.size() < 6) held.push_back(next(loader));        // and each of these plans another batch
  setup.behaviour->gather = 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(loader.usage().bytes, loader.limit_bytes());
  EXPECT_GT(loader.usage().batches, held.size());
}

TEST(Loader, KeepsAsManyBatchesPlannedAsWereAskedForAndRecyclesThem) {
  Loader loader(options_of({.epochs = {}, .prefetch = 3}));
  std::vector<std::byte*> seen;
  for (int i = 0; i < 200; ++i) {
    const auto batch = next(loader);
    if (i == 0) {
      EXPECT_EQ(loader.usage().batches, 3U + 1U) << "beside the one that is held";
    }
    if (std::find(seen.begin(), seen.end(), batch->slab.data()) == seen.end()) seen.push_back(batch->slab.data());
  }
  EXPECT_LE(seen.size(), 3U + 2U);
}

TEST(Loader, MovingAwayFromManyReadsIsNotTakenForHeldBatches) {
  Case setup{.epochs = {}, .threads = 4, .prefetch = 4, .max_bytes = 1, .late = true};
  setup.behaviour->delay = std::chrono::microseconds(300);
  Loader loader(options_of(setup));
  for (std::uint64_t i = 0; i < 30; ++i) {
    loader.poll();  // plans ahead; all of it is dropped by the seek
    loader.seek(i);
  }
  EXPECT_EQ(next(loader)->plan.position, 29U);
}

TEST(Loader, AThreadThatCannotStartIsAnErrorAndThoseBeforeItEnd) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow is beyond any limit of the address space";
#endif
  EXPECT_TRUE(is_true_in_child([] {
    const rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};  // stacks for about a hundred threads
    setrlimit(RLIMIT_AS, &limit);
    try {
      Loader loader(options_of({.threads = 1000}));
      loader.poll();
    } catch (const Error& error) {
      return error.kind() == ErrorKind::IoError && std::string(error.what()).find("of 1000") != std::string::npos;
    }
    return false;
  }));
}

TEST(Loader, AForkedChildRefusesAndEndsCleanly) {
  auto loader = std::make_unique<Loader>(options_of({.epochs = {}}));
  auto batch = next(*loader);
  const Seen before = look(*batch);
  EXPECT_TRUE(is_true_in_child([&] {
    bool refused = false;
    try {
      loader->poll();
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::InvalidArgument;
    }
    const bool same = look(*batch) == before;
    batch.reset();
    loader.reset();  // must not join threads that are not there
    return refused && same;
  }));
  EXPECT_NE(next(*loader), nullptr);
}

}  // namespace
}  // namespace penstock::testing
