#include "tests/native/core/engine/loader_fixture.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

namespace penstock::testing {
namespace {

std::vector<Case> kinds() {
  std::vector<Case> all;
  for (const std::uint64_t window : {5, 0}) {
    for (const bool lends : {false, true}) {
      for (const bool late : {false, true}) {
        for (const unsigned miss_every : {1U, 3U, 1'000'000U}) {
          Case setup;
          setup.window = window;
          setup.lends = lends;
          setup.behaviour->late = late;
          setup.behaviour->miss_every = miss_every;
          all.push_back(setup);
        }
      }
    }
  }
  return all;
}

TEST(Loader, SlowRowsOfABatchAreReadByAllThreadsAtOnce) {
  Case setup;
  setup.batch = 4;
  setup.threads = 4;
  setup.prefetch = 1;
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

TEST(Loader, BatchesAreWhatTheSourceHolds) {
  for (const Case& setup : kinds()) {
    Loader loader(options_of(setup));
    const std::vector<Seen> all = rest(loader);
    ASSERT_EQ(all.size(), 12U);  // 46 positions in batches of 4
    std::uint64_t position = 0;
    for (const Seen& seen : all) {
      EXPECT_EQ(seen.position, position);
      std::vector<std::uint32_t> records;
      std::vector<std::int64_t> inputs;
      for (std::size_t i = 0; i < 4; ++i, ++position) {
        const bool valid = position < 46;
        const std::uint64_t index = position % 23;
        EXPECT_EQ(seen.indices[i], valid ? static_cast<std::int64_t>(index) : -1);
        const std::uint64_t length = setup.window > 0 ? setup.window : MemorySource::document_length(index);
        const std::uint64_t first = setup.window > 0 ? index * setup.window : index * 4;
        for (std::uint64_t k = 0; k < length && (valid || setup.window > 0); ++k) {
          records.push_back(valid ? static_cast<std::uint32_t>(first + k) : 0);
          if (k + 1 < length || setup.window == 0) inputs.push_back(records.back());
        }
      }
      EXPECT_EQ(seen.records, records);
      EXPECT_EQ(seen.columns[0], inputs);
    }
    EXPECT_EQ(loader.position(), 46U);
  }
}

// What the consumer reads itself while it waits, what it leaves to the threads, and both in one batch.
TEST(Loader, AConsumerThatWaitsReadsWhatNeedNotBeWaitedFor) {
  Case plain;
  plain.count = 500;
  plain.batch = 8;
  Loader reference(options_of(plain));
  const std::vector<Seen> expected = rest(reference);
  EXPECT_EQ(plain.behaviour->hits, 0U);
  for (const unsigned miss_every : {1U, 2U, 9U, 1'000'000U}) {
    for (const unsigned threads : {1U, 3U}) {
      Case setup = plain;
      setup.behaviour = std::make_shared<Behaviour>();
      setup.behaviour->miss_every = miss_every;
      setup.behaviour->late = true;  // the threads are slow, so the consumer waits
      setup.behaviour->delay = std::chrono::microseconds(50);
      setup.threads = threads;
      Loader loader(options_of(setup));
      ASSERT_EQ(rest(loader), expected) << miss_every << " " << threads;
      EXPECT_GT(setup.behaviour->asked, 0U);
      EXPECT_EQ(setup.behaviour->hits > 0, miss_every > 1);
    }
  }
}

TEST(Loader, AStoreWhereNothingIsAtHandIsReadByTheThreadsAlone) {
  Case setup;
  Loader reference(options_of(setup));
  const std::vector<Seen> expected = rest(reference);
  setup.behaviour = std::make_shared<Behaviour>();
  setup.behaviour->nothing_at_hand = true;
  setup.behaviour->late = true;  // the consumer waits
  Loader loader(options_of(setup));
  EXPECT_EQ(rest(loader), expected);
  EXPECT_EQ(setup.behaviour->asked, 0U);
}

// A rank's own way to read: the files name one store, the loader reads through another.
TEST(Loader, FilesAreReadThroughTheStoreThatIsChosen) {
  Case setup;
  LoaderOptions options = options_of(setup);
  Loader reference(options);
  const std::vector<Seen> expected = rest(reference);
  const auto other = std::make_shared<Behaviour>();
  MemorySource same(setup.count, setup.window, other);
  setup.behaviour->channels = 0;
  options.through = [&](ByteStore& files) -> ByteStore& { return &files == &same.store() ? files : same.store(); };
  Loader loader(options);
  EXPECT_EQ(rest(loader), expected);
  EXPECT_EQ(setup.behaviour->channels, 0U);
  EXPECT_GT(other->channels, 0U);
}

TEST(Loader, LabelsFollowInputsAndAreIgnoredWherePadded) {
  Case setup;
  setup.count = 7;
  setup.epochs = 1;
  Loader loader(options_of(setup));
  const Seen seen = rest(loader).at(1);
  const std::vector<std::int64_t> inputs{20, 21, 22, 23, 25, 26, 27, 28, 30, 31, 32, 33, 0, 0, 0, 0};
  const std::vector<std::int64_t> labels{21, 22, 23, 24, 26, 27, 28, 29, 31, 32, 33, 34, -100, -100, -100, -100};
  EXPECT_EQ(seen.columns[0], inputs);
  EXPECT_EQ(seen.columns[1], labels);
}

TEST(Loader, EveryThreadCountPrefetchAndReaderGivesTheSameBatches) {
  for (const std::uint64_t window : {5, 0}) {
    Case plain;
    plain.window = window;
    plain.threads = 1;
    plain.prefetch = 1;
    Loader reference(options_of(plain));
    const std::vector<Seen> expected = rest(reference);
    for (const unsigned threads : {1, 2, 5}) {
      for (const unsigned prefetch : {1, 2, 7}) {
        for (const bool late : {false, true}) {
          Case setup;
          setup.window = window;
          setup.threads = threads;
          setup.prefetch = prefetch;
          setup.behaviour->late = late;
          Loader loader(options_of(setup));
          EXPECT_EQ(rest(loader), expected) << threads << " threads, prefetch " << prefetch << ", late " << late;
        }
      }
    }
  }
}

TEST(Loader, RestoreAtEveryStepRepeatsTheRest) {
  for (Case setup : kinds()) {
    for (const bool per_epoch : {false, true}) {
      for (const Tail tail : {Tail::Pad, Tail::Drop}) {
        setup.per_epoch = per_epoch;
        setup.tail = tail;
        setup.skip = {{5, 9}, {44, 46}};
        Loader whole(options_of(setup));
        std::vector<Seen> all;
        std::vector<State> states{whole.state()};
        while (whole.position() < 46) {
          whole.begin();
          for (; auto batch = next(whole); states.push_back(whole.state())) all.push_back(look(*batch));
        }
        for (std::size_t step = 0; step <= all.size(); ++step) {
          Loader again(options_of(setup));
          if (step % 2 == 1) next(again);  // before and after the first batch
          again.load(states[std::min(step, states.size() - 1)], OnMismatch::Refuse);
          std::vector<Seen> remaining;
          while (again.position() < 46) {
            again.begin();
            const std::vector<Seen> some = rest(again);
            remaining.insert(remaining.end(), some.begin(), some.end());
          }
          EXPECT_EQ(remaining, std::vector<Seen>(all.begin() + static_cast<std::ptrdiff_t>(step), all.end()));
        }
      }
    }
  }
}

TEST(Loader, StateTellsWhatWasDeliveredNotWhatWasPrefetched) {
  Case setup;
  setup.prefetch = 7;
  Loader loader(options_of(setup));
  EXPECT_EQ(loader.state().position, 0U);
  for (std::uint64_t step = 1; step <= 5; ++step) {
    const auto batch = next(loader);
    EXPECT_EQ(loader.state().position, 4 * step);
    EXPECT_EQ(batch->plan.end, 4 * step);
  }
}

TEST(Loader, PerEpochEndsEachForAtTheEpochsEnd) {
  Case setup;
  setup.per_epoch = true;
  setup.epochs = 3;
  Loader loader(options_of(setup));
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    loader.begin();
    EXPECT_EQ(rest(loader).size(), 6U);
    EXPECT_EQ(loader.position(), (epoch + 1) * 23);
    EXPECT_EQ(next(loader), nullptr);  // nothing until the next for
  }
  loader.begin();
  EXPECT_EQ(next(loader), nullptr);
  EXPECT_EQ(loader.position(), 69U);
}

TEST(Loader, AFinishedLoaderGivesNothingUntilItIsMoved) {
  Loader loader(options_of(Case{}));
  const std::vector<Seen> first = rest(loader);
  loader.begin();
  EXPECT_TRUE(rest(loader).empty());
  loader.seek(0);
  EXPECT_EQ(rest(loader), first);
}

TEST(Loader, AnErrorIsRaisedAtItsBatchAndTheLoaderCanBeAskedAgain) {
  for (const bool late : {false, true}) {
    Case setup;
    setup.prefetch = 6;
    setup.behaviour->late = late;
    setup.behaviour->fail_offset = 10 * 5 * 4;  // observation 10: row 2 of batch 2
    setup.behaviour->failures = 1;
    Loader reference(options_of(Case{}));
    const std::vector<Seen> expected = rest(reference);
    Loader loader(options_of(setup));
    EXPECT_EQ(look(*next(loader)), expected[0]);
    EXPECT_EQ(look(*next(loader)), expected[1]);
    EXPECT_THROW(
        {
          try {
            next(loader);
          } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::IoError);
            EXPECT_NE(std::string(error.what()).find("offset 200"), std::string::npos);
            throw;
          }
        },
        Error);
    EXPECT_EQ(loader.position(), 8U);
    const std::vector<Seen> remaining = rest(loader);
    EXPECT_EQ(remaining, std::vector<Seen>(expected.begin() + 2, expected.end()));
  }
}

TEST(Loader, NoMemoryOnAThreadIsAnErrorOfItsBatch) {
  for (const std::uint64_t window : {5, 0}) {
    Case setup;
    setup.window = window;
    Loader reference(options_of(setup));
    const std::vector<Seen> expected = rest(reference);
    setup.behaviour = std::make_shared<Behaviour>();
    setup.behaviour->refused = 1;
    Loader loader(options_of(setup));
    try {
      rest(loader);
      FAIL();
    } catch (const Error& error) {  // in words, which the consumer's thread makes
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
      EXPECT_NE(std::string(error.what()).find("no memory for a batch of 4 rows"), std::string::npos) << error.what();
    }
    setup.behaviour->refused = 0;
    loader.seek(0);
    EXPECT_EQ(rest(loader), expected);
  }
}

// Memory for the batch that begins at `position` and all after it is refused until `*has_memory`.
LoaderOptions short_of_memory(const Case& setup, const bool* has_memory, int lendings) {
  LoaderOptions options = options_of(setup);
  options.lend = [has_memory, lendings, lent = 0](Slab& slab, std::uint64_t bytes) mutable {
    if (!*has_memory && lent == lendings) throw std::bad_alloc();
    ++lent;
    const std::shared_ptr<std::byte[]> memory(new std::byte[bytes + 1]);
    slab.lend(memory.get(), bytes, memory);
  };
  return options;
}

TEST(Loader, ThatALaterBatchHasNoMemoryIsSaidAtItsPlace) {
  for (const std::uint64_t window : {5, 0}) {
    for (const unsigned prefetch : {1, 2, 3, 8}) {
      Case setup;
      setup.window = window;
      setup.prefetch = prefetch;
      if (window == 0) setup.threads = 1;  // documents are measured, and ask for memory, in the order of their batches
      Loader plain(options_of(setup));
      const std::vector<Seen> expected = rest(plain);
      bool has_memory = false;
      Loader loader(short_of_memory(setup, &has_memory, 2));
      std::vector<Seen> seen;
      for (int i = 0; i < 2; ++i) seen.push_back(look(*next(loader)));
      for (int i = 0; i < 3; ++i) {
        EXPECT_THROW(next(loader), std::bad_alloc);
        EXPECT_EQ(loader.position(), 8U);
      }
      has_memory = true;
      for (Seen& each : rest(loader)) seen.push_back(std::move(each));
      EXPECT_EQ(seen, expected) << window << " " << prefetch;
    }
  }
}

// An interrupt, say: it must not wait for the place of a batch.
TEST(Loader, WhatTheLenderThrowsOtherwiseIsThrownAtOnce) {
  struct Interrupt {};
  for (const std::uint64_t window : {5, 0}) {
    Case setup;
    setup.window = window;
    Loader plain(options_of(setup));
    const std::vector<Seen> expected = rest(plain);
    LoaderOptions options = options_of(setup);
    bool is_interrupted = true;
    options.lend = [&is_interrupted, lent = 0](Slab& slab, std::uint64_t bytes) mutable {
      if (++lent == 2 && std::exchange(is_interrupted, false)) throw Interrupt();
      const std::shared_ptr<std::byte[]> memory(new std::byte[bytes + 1]);
      slab.lend(memory.get(), bytes, memory);
    };
    Loader loader(options);
    std::vector<Seen> seen;
    unsigned interrupts = 0;
    while (interrupts == 0 || !loader.ended()) {
      try {
        if (const auto batch = next(loader)) seen.push_back(look(*batch));
      } catch (const Interrupt&) {
        ++interrupts;
        EXPECT_LE(seen.size(), window == 0 ? 1U : 0U) << "before the batch that the memory was for";
      }
    }
    EXPECT_EQ(interrupts, 1U);
    EXPECT_EQ(seen, expected);
  }
}

TEST(Loader, ABatchThatNoMemoryHoldsIsRefusedWhenTheLoaderIsMadeAndWhenTheSizeIsSet) {
  for (const std::uint64_t window : {5, 0}) {
    for (const std::uint64_t size : {UINT64_MAX / 5, (std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 62,
                                     std::uint64_t{1} << 50, std::uint64_t{1} << 40, std::uint64_t{1} << 24}) {
      Case setup;
      setup.epochs.reset();
      setup.window = window;
      const LoaderOptions good = options_of(setup);
      LoaderOptions options = good;
      options.job = std::make_shared<Job>(options.job->with_batch_size(8, size));
      const auto expect_refusal = [&](const auto& action) {
        try {
          action();
          FAIL() << size;
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
          EXPECT_NE(std::string(error.what()).find("no memory for a batch of " + with_commas(size) + " rows"),
                    std::string::npos)
              << error.what();
          EXPECT_NE(std::string(error.what()).find("use a smaller batch size"), std::string::npos) << error.what();
        }
      };
      expect_refusal([&] { const Loader loader(options); });
      Loader loader(good);
      EXPECT_EQ(next(loader)->plan.position, 0U);
      expect_refusal([&] { loader.set_global_batch_size(size); });
      EXPECT_EQ(next(loader)->plan.position, 4U) << "nothing has changed";
    }
  }
}

TEST(Loader, NoMemoryForALaterBatchIsForgottenWhenThePositionMoves) {
  Case setup;
  LoaderOptions options = options_of(setup);
  int lent = 0;
  options.lend = [&lent](Slab& slab, std::uint64_t bytes) {
    if (++lent == 5) throw std::bad_alloc();  // when the second batch is delivered and the fifth planned
    const std::shared_ptr<std::byte[]> memory(new std::byte[bytes]);
    slab.lend(memory.get(), bytes, memory);
  };
  Loader loader(options);
  next(loader);
  next(loader);
  EXPECT_EQ(lent, 5);
  loader.seek(0);
  EXPECT_EQ(next(loader)->plan.position, 0U);
}

TEST(Loader, WhatIsPlannedIsReadThoughNobodyWaits) {
  Case setup;
  setup.prefetch = 8;
  setup.epochs.reset();
  setup.max_bytes = 1;
  Loader loader(options_of(setup));
  std::vector<std::shared_ptr<Batch>> held;
  for (int i = 0; i < 10; ++i) held.push_back(next(loader));   // all that there is memory for
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the threads have nothing to do and sleep
  held.pop_back();
  std::shared_ptr<Batch> last;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!last && std::chrono::steady_clock::now() < end) last = loader.poll();  // which never waits
  EXPECT_NE(last, nullptr);
}

TEST(Loader, HeldBatchesKeepTheirContentAndTheirMemoryIsBounded) {
  Case setup;
  setup.epochs.reset();
  setup.max_bytes = 1;  // so the floor of prefetch + 2 batches holds
  Loader loader(options_of(setup));
  std::vector<std::shared_ptr<Batch>> held;
  std::vector<Seen> seen;
  try {
    for (int i = 0; i < 100; ++i) {
      held.push_back(next(loader));
      seen.push_back(look(*held.back()));
    }
    FAIL() << "100 batches fit";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    EXPECT_NE(std::string(error.what()).find("5 batches are held"), std::string::npos) << error.what();
  }
  EXPECT_LE(loader.usage().bytes, loader.limit_bytes());
  for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(look(*held[i]), seen[i]);
  held.clear();
  EXPECT_EQ(next(loader)->plan.position, 5 * 4U);  // it can be asked again
}

TEST(Loader, BuffersAreRecycled) {
  Case setup;
  setup.epochs.reset();
  Loader loader(options_of(setup));
  std::vector<std::byte*> seen;
  for (int i = 0; i < 200; ++i) {
    const auto batch = next(loader);
    if (std::find(seen.begin(), seen.end(), batch->slab.data()) == seen.end()) seen.push_back(batch->slab.data());
  }
  EXPECT_LE(seen.size(), setup.prefetch + 2U);
}

TEST(Loader, BatchesOutliveTheLoader) {
  std::shared_ptr<Batch> batch;
  Seen before;
  {
    Loader loader(options_of(Case{}));
    batch = next(loader);
    before = look(*batch);
  }
  EXPECT_EQ(look(*batch), before);
}

TEST(Loader, EndsAtOnceWithReadsUnderWay) {
  Case setup;
  setup.epochs.reset();
  setup.prefetch = 50;
  setup.behaviour->late = true;
  setup.behaviour->delay = std::chrono::microseconds(500);
  for (int i = 0; i < 20; ++i) {
    Loader loader(options_of(setup));
    if (i % 2 == 0) next(loader);
    loader.poll();
  }
}

TEST(Loader, MovingWithReadsUnderWayNeverMixesBatches) {
  Case setup;
  setup.epochs.reset();
  setup.prefetch = 5;
  setup.behaviour->late = true;
  Loader loader(options_of(setup));
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::uint64_t position = i * 7 % 40;
    loader.seek(position);
    const auto batch = next(loader);
    EXPECT_EQ(batch->plan.position, position);
    EXPECT_EQ(look(*batch).records[0], position % 23 * 5);
  }
}

TEST(Loader, MovingAwayFromManyReadsIsNotTakenForHeldBatches) {
  Case setup;
  setup.epochs.reset();
  setup.prefetch = 4;
  setup.max_bytes = 1;
  setup.threads = 4;
  setup.behaviour->late = true;
  setup.behaviour->delay = std::chrono::microseconds(300);
  Loader loader(options_of(setup));
  for (std::uint64_t i = 0; i < 30; ++i) {
    loader.poll();  // plans ahead; all of it is dropped by the seek
    loader.seek(i);
  }
  EXPECT_EQ(next(loader)->plan.position, 29U);
}

TEST(Loader, BatchSizeChangesFromTheNextUndeliveredBatch) {
  Loader loader(options_of(Case{}));
  next(loader);
  loader.set_global_batch_size(6);
  const auto batch = next(loader);
  EXPECT_EQ(batch->plan.position, 4U);
  EXPECT_EQ(batch->plan.rows, 6U);
  EXPECT_EQ(loader.position(), 10U);
}

TEST(Loader, AStateOfAnotherJobIsRefusedOrOverridden) {
  Case other;
  other.count = 24;
  Loader theirs(options_of(other));
  next(theirs);
  Loader loader(options_of(Case{}));
  EXPECT_THROW(loader.load(theirs.state(), OnMismatch::Refuse), Error);
  EXPECT_EQ(loader.position(), 0U);
  loader.load(theirs.state(), OnMismatch::KeepPosition);
  EXPECT_EQ(loader.position(), 4U);
  loader.load(theirs.state(), OnMismatch::Restart);
  EXPECT_EQ(loader.position(), 0U);
  State later = loader.state();
  later.version = 2;
  EXPECT_THROW(loader.load(later, OnMismatch::Restart), Error);
}

TEST(Loader, AThreadThatCannotStartIsAnErrorAndThoseBeforeItEnd) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's shadow is beyond any limit of the address space";
#endif
  Case setup;
  setup.threads = 1000;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};  // stacks for about a hundred threads
    setrlimit(RLIMIT_AS, &limit);
    bool refused = false;
    try {
      Loader loader(options_of(setup));
      loader.poll();
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::IoError && std::string(error.what()).find("of 1000") != std::string::npos;
    }
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Loader, AForkedChildRefusesAndEndsCleanly) {
  Case setup;
  setup.epochs.reset();
  auto loader = std::make_unique<Loader>(options_of(setup));
  auto batch = next(*loader);
  const Seen before = look(*batch);
  const pid_t child = fork();
  if (child == 0) {
    bool refused = false;
    try {
      loader->poll();
    } catch (const Error& error) {
      refused = error.kind() == ErrorKind::InvalidArgument;
    }
    const bool same = look(*batch) == before;
    batch.reset();
    loader.reset();  // must not join threads that are not there
    _exit(refused && same ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_NE(next(*loader), nullptr);
}

TEST(Loader, EveryRankPadsToTheSameRows) {
  for (std::uint64_t rank = 0; rank < 5; ++rank) {
    for (const std::uint64_t window : {5, 0}) {
      Case setup;
      setup.window = window;
      setup.count = 7;
      setup.epochs = 1;
      setup.batch = 5;
      setup.rank = rank;
      setup.world_size = 5;
      Loader loader(options_of(setup));
      const std::vector<Seen> all = rest(loader);
      ASSERT_EQ(all.size(), 2U);
      EXPECT_EQ(all[1].indices, std::vector<std::int64_t>{rank < 2 ? static_cast<std::int64_t>(5 + rank) : -1});
      EXPECT_EQ(all[1].end, 7U);
    }
  }
}

}  // namespace
}  // namespace penstock::testing
