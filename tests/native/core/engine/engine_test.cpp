// The engine without a loader: what it is given becomes ready and whole, whenever it is cancelled or destroyed.
#include "core/engine/engine.h"

#include "core/base/error.h"
#include "core/engine/batch_memory.h"
#include "tests/native/core/engine/loader_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace penstock::testing {
namespace {

using namespace std::chrono_literals;
using Phase = Batch::Phase;

/// An engine over memory, and batches for it in the order of their positions.
class Driven {
 public:
  explicit Driven(const Case& setup) : setup_(setup), pool_(BatchPool::make(8)) {
    std::vector<BatchFormat> formats{format_of(setup, setup.window)};
    job_ = job_of(setup, std::make_shared<IdentityOrder>(setup.count, setup.fetch), formats);
    formats_ = std::make_shared<const BatchFormats>(std::move(formats));
    bound = std::make_shared<MemoryBound>(setup.max_bytes, 0, setup.prefetch + 2);
    engine = std::make_unique<Engine>(
        EngineOptions{.formats = formats_,
                      .rows = std::make_shared<const RowChoice>(Share{setup.rank, setup.world_size}),
                      .through = {},
                      .threads = setup.threads,
                      .cores = 2,
                      .lends = setup.lends},
        job_, pool_, bound);
  }

  /// Plans and enqueues the next batch; null at the end of the run.
  std::shared_ptr<Batch> enqueue() {
    std::optional<BatchPlan> plan = job_->plan(position, {setup_.rank, setup_.world_size});
    if (!plan) return nullptr;
    position = plan->end;
    auto batch = pool_->take();
    batch->plan = std::move(*plan);
    batch->formats = formats_;
    batch->format = &formats_->front();
    if (!batch->format->shape.ragged) batch->slab.ensure(needed_bytes(*batch));
    pool_->account(*batch);
    engine->enqueue(batch);
    return batch;
  }
  std::vector<std::shared_ptr<Batch>> enqueue(std::size_t count) {
    std::vector<std::shared_ptr<Batch>> batches;
    while (batches.size() < count) {
      batches.push_back(enqueue());
      if (!batches.back()) {
        batches.pop_back();
        break;
      }
    }
    engine->top_up(batches.size());
    return batches;
  }

  /// Until it is settled; memory is lent where it is asked for.
  Phase finish(Batch& batch) {
    while (true) {
      const Phase phase = engine->wait(batch, 50ms);
      if (phase == Phase::Ready || phase == Phase::Failed) return phase;
      if (phase != Phase::NeedsMemory) continue;
      batch.slab.ensure(needed_bytes(batch));
      pool_->account(batch);
      engine->lend(batch);
    }
  }

  /// As a loader drops what it has planned.
  void cancel(std::vector<std::shared_ptr<Batch>>& batches, std::uint64_t go_on_at) {
    for (const auto& batch : batches) batch->cancelled = true;
    engine->cancel_all();
    batches.clear();
    position = go_on_at;
  }
  void change_batch_size(std::uint64_t size) {
    job_ = std::make_shared<const Job>(job_->with_batch_size(position, size));
    engine->restart(job_);
  }

  [[nodiscard]] BatchPool::Usage usage() const { return pool_->usage(); }

  std::unique_ptr<Engine> engine;
  std::shared_ptr<MemoryBound> bound;
  std::uint64_t position = 0;

 private:
  const Case setup_;
  std::shared_ptr<const Job> job_;
  std::shared_ptr<const BatchFormats> formats_;
  std::shared_ptr<BatchPool> pool_;
};

/// What memory holds, by arithmetic.
void expect_whole(Batch& batch) {
  const Seen seen = look(batch);
  const std::uint64_t window = batch.format->shape.ragged ? 0 : batch.format->shape.length;
  std::vector<std::uint32_t> records;
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    const bool valid = i < batch.plan.valid;
    const std::uint64_t index = valid ? batch.picks[i].index : 0;
    const std::uint64_t length = window > 0 ? window : valid ? MemorySource::document_length(index) : 0;
    for (std::uint64_t k = 0; k < length; ++k) {
      records.push_back(valid ? static_cast<std::uint32_t>(index * (window > 0 ? window : 4) + k) : 0);
    }
    EXPECT_EQ(batch.rows[i].spans.size(), valid ? 1U : 0U);
  }
  EXPECT_EQ(seen.records, records) << "at " << seen.position;
  EXPECT_EQ(seen.entries.size(), 3 * batch.plan.valid);
}

/// Windows and documents, alone and in fetches, at once and late, lent and not.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::uint64_t window : {5, 0}) {
    for (const std::uint64_t fetch : {1, 7}) {
      for (const bool late : {false, true}) {
        for (const bool lends : {false, true}) {
          Case setup;
          setup.window = window;
          setup.fetch = fetch;
          setup.behaviour->late = late;
          setup.lends = lends && window == 0;
          setup.threads = 3;
          if (lends && window > 0) continue;
          cases.push_back(setup);
        }
      }
    }
  }
  return cases;
}

std::string describe(const Case& setup) {
  return "window " + std::to_string(setup.window) + " fetch " + std::to_string(setup.fetch) +
         (setup.behaviour->late ? " late" : "") + (setup.lends ? " lent" : "");
}

TEST(Engine, BatchesBecomeReadyAndWholeInWhateverOrderTheyAreAwaited) {
  for (const Case& setup : all_cases()) {
    SCOPED_TRACE(describe(setup));
    Driven run(setup);
    auto batches = run.enqueue(100);
    ASSERT_EQ(batches.size(), 12U) << "two epochs of 23, four at once";
    std::shuffle(batches.begin(), batches.end(), std::mt19937(7));
    for (const auto& batch : batches) {
      ASSERT_EQ(run.finish(*batch), Phase::Ready);
      expect_whole(*batch);
    }
    while (!run.engine->idle()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(run.bound->fetched(), 0U) << "fetches go with the last row that was taken";
    EXPECT_EQ(run.usage().batches, batches.size());
  }
}

TEST(Engine, AFailedBatchTellsOfItsLowestRowWhicheverFailedFirst) {
  for (const bool late : {false, true}) {
    for (const std::uint64_t fetch : {1, 7}) {
      for (int round = 0; round < 20; ++round) {
        Case setup;
        setup.threads = 3;
        setup.fetch = fetch;
        setup.behaviour->late = late;
        Driven run(setup);
        // All of the file's reads beyond row 4 fail: it is shorter than the source says.
        setup.behaviour->fail_end = 5 * 5 * 4;
        auto batches = run.enqueue(3);
        ASSERT_EQ(run.finish(*batches[0]), Phase::Ready);
        expect_whole(*batches[0]);
        ASSERT_EQ(run.finish(*batches[1]), Phase::Failed);
        EXPECT_EQ(batches[1]->error_row, 1U) << "row 0 is whole, rows 1 to 3 are not";
        ASSERT_TRUE(batches[1]->error);
        EXPECT_THROW(std::rethrow_exception(batches[1]->error), Error);
        ASSERT_EQ(run.finish(*batches[2]), Phase::Failed);
        EXPECT_EQ(batches[2]->error_row, 0U);
        run.cancel(batches, 4);
        setup.behaviour->fail_end = -1;
        batches = run.enqueue(1);
        ASSERT_EQ(run.finish(*batches[0]), Phase::Ready) << "it is read again";
        expect_whole(*batches[0]);
      }
    }
  }
}

TEST(Engine, AJobThatCannotPickFailsTheBatch) {
  class Broken : public IdentityOrder {
   public:
    using IdentityOrder::IdentityOrder;
    void pick(std::uint64_t, std::uint64_t, std::span<Pick>) const override {
      raise(ErrorKind::Corruption, "no such position");
    }
  };
  for (const std::uint64_t fetch : {1, 7}) {
    Case setup;
    std::vector<BatchFormat> formats{format_of(setup, 5)};
    const auto job = job_of(setup, std::make_shared<Broken>(23, fetch), formats);
    const auto shared = std::make_shared<const BatchFormats>(std::move(formats));
    const auto pool = BatchPool::make(4);
    const auto bound = std::make_shared<MemoryBound>(1 << 20, 0, 4);
    Engine engine({.formats = shared,
                   .rows = std::make_shared<const RowChoice>(Share{}),
                   .through = {},
                   .threads = 2,
                   .cores = 2,
                   .lends = false},
                  job, pool, bound);
    const auto batch = pool->take();
    batch->plan = *job->plan(0, {});
    batch->formats = shared;
    batch->format = &shared->front();
    batch->slab.ensure(needed_bytes(*batch));
    engine.enqueue(batch);
    engine.top_up(1);
    Phase phase = Phase::Planned;
    while (phase != Phase::Failed) phase = engine.wait(*batch, 50ms);
    EXPECT_THROW(std::rethrow_exception(batch->error), Error);
    EXPECT_EQ(bound->fetched(), 0U);
  }
}

TEST(Engine, RaggedBatchesWaitForMemoryAndGoOnWithIt) {
  for (const std::uint64_t fetch : {1, 7}) {
    Case setup;
    setup.window = 0;
    setup.lends = true;
    setup.fetch = fetch;
    Driven run(setup);
    const auto batches = run.enqueue(3);
    for (const auto& batch : batches) {
      Phase phase = Phase::Planned;
      while (phase != Phase::NeedsMemory) phase = run.engine->wait(*batch, 50ms);
      EXPECT_EQ(run.engine->wait(*batch, 1ms), Phase::NeedsMemory) << "it stays so until memory is lent";
    }
    for (const auto& batch : batches) {
      EXPECT_EQ(run.finish(*batch), Phase::Ready);
      expect_whole(*batch);
    }
  }
}

TEST(Engine, PatienceEnds) {
  Case setup;
  setup.behaviour->late = true;
  setup.behaviour->delay = 20ms;
  Driven run(setup);
  auto batches = run.enqueue(1);
  const auto began = std::chrono::steady_clock::now();
  const Phase phase = run.engine->wait(*batches[0], 2ms);
  EXPECT_TRUE(phase != Phase::Ready && phase != Phase::Failed);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
  EXPECT_EQ(run.finish(*batches[0]), Phase::Ready);
}

// With no more at hand than every other read, the consumer gives back what it has claimed, and threads read it.
TEST(Engine, RowsThatAreNotAtHandAreReadByThreads) {
  for (const unsigned miss_every : {1U, 2U, 3U, 1'000'000U}) {
    Case setup;
    setup.count = 400;
    setup.batch = 20;
    setup.threads = 1;
    setup.behaviour->miss_every = miss_every;
    setup.behaviour->late = true;  // the thread is slow, so the consumer has something to try
    setup.behaviour->delay = std::chrono::microseconds(50);
    Driven run(setup);
    while (true) {
      const auto batch = run.enqueue();
      if (!batch) break;
      ASSERT_EQ(run.finish(*batch), Phase::Ready);
      expect_whole(*batch);
    }
    EXPECT_GT(setup.behaviour->asked, 0U) << "the consumer tries";
  }
}

TEST(Engine, AfterACancelOnlyWhatIsEnqueuedAfterwardsIsRead) {
  for (const Case& setup : all_cases()) {
    SCOPED_TRACE(describe(setup));
    Driven run(setup);
    for (const std::uint64_t go_on_at : {9, 0, 22, 30}) {
      auto dropped = run.enqueue(4);
      run.engine->wait(*dropped[1], 100us);
      run.cancel(dropped, go_on_at);
      const auto batches = run.enqueue(3);
      for (const auto& batch : batches) {
        ASSERT_EQ(run.finish(*batch), Phase::Ready);
        expect_whole(*batch);
      }
      EXPECT_EQ(batches[0]->plan.position, go_on_at);
    }
  }
}

TEST(Engine, AnotherJobHoldsFromTheNextBatchOn) {
  for (const std::uint64_t fetch : {1, 7}) {
    Case setup;
    setup.fetch = fetch;
    Driven run(setup);
    auto batches = run.enqueue(3);
    ASSERT_EQ(run.finish(*batches[0]), Phase::Ready);
    run.cancel(batches, 4);
    run.change_batch_size(7);
    batches = run.enqueue(2);
    for (const auto& batch : batches) {
      ASSERT_EQ(run.finish(*batch), Phase::Ready);
      expect_whole(*batch);
      EXPECT_EQ(batch->plan.rows, 7U);
    }
    EXPECT_EQ(batches[1]->plan.position, 11U);
  }
}

TEST(Engine, IsIdleOnlyWhenNoThreadHoldsABatch) {
  for (const Case& setup : all_cases()) {
    SCOPED_TRACE(describe(setup));
    Driven run(setup);
    while (!run.engine->idle()) std::this_thread::sleep_for(1ms);  // the threads begin
    auto batches = run.enqueue(4);
    EXPECT_FALSE(run.engine->idle() && batches[3]->phase == Phase::Planned);
    run.cancel(batches, 0);
    while (!run.engine->idle()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(run.usage().batches, 0U) << "what was dropped has come back";
    EXPECT_EQ(run.bound->fetched(), 0U);
  }
}

TEST(Engine, MayBeDestroyedInEveryPhase) {
  for (Case setup : all_cases()) {
    SCOPED_TRACE(describe(setup));
    for (const auto pause : {0us, 20us, 100us, 400us}) {
      for (const std::size_t count : {0, 1, 6}) {
        setup.behaviour->delay = pause / 2;
        Driven run(setup);
        auto batches = run.enqueue(count);
        std::this_thread::sleep_for(pause);
        if (count > 0 && pause > 50us) run.engine->wait(*batches[0], pause);
        run.engine.reset();
        batches.clear();
        EXPECT_EQ(run.usage().batches, 0U);
        EXPECT_EQ(run.bound->fetched(), 0U);
      }
    }
  }
}

// Nobody has marked them as cancelled before the engine goes.
TEST(Engine, BatchesOutliveTheEngineAndAreCancelledOrWhole) {
  for (const Case& setup : all_cases()) {
    SCOPED_TRACE(describe(setup));
    for (int round = 0; round < 40; ++round) {
      Driven run(setup);
      const auto batches = run.enqueue(6);
      if (round % 4 > 0) run.finish(*batches[0]);
      std::this_thread::sleep_for(std::chrono::microseconds(round % 10 * 10));
      run.engine.reset();
      for (const auto& batch : batches) {
        if (batch->phase == Phase::Ready && !batch->cancelled) expect_whole(*batch);
      }
      EXPECT_TRUE(round % 4 == 0 || (batches[0]->phase == Phase::Ready && !batches[0]->cancelled));
    }
  }
}

// Runs under ThreadSanitizer, too: consumers that do all they may, in no order.
TEST(Engine, ShortRunsWithRandomCancels) {
  std::mt19937 random(11);
  const auto end = std::chrono::steady_clock::now() + 1500ms;
  for (int number = 0; std::chrono::steady_clock::now() < end; ++number) {
    Case setup;
    setup.window = random() % 2 == 0 ? 5 : 0;
    setup.count = 1 + random() % 60;
    setup.batch = 1 + random() % 9;
    setup.fetch = std::vector<std::uint64_t>{1, 3, 16, 60}[random() % 4];
    setup.threads = 1 + random() % 4;
    setup.max_bytes = random() % 2 == 0 ? 1 << 20 : 1;
    setup.lends = setup.window == 0 && random() % 2 == 0;
    setup.epochs = std::nullopt;
    setup.behaviour->late = random() % 3 == 0;
    setup.behaviour->near_bytes = random() % 2 * 40;
    setup.behaviour->miss_every = 1 + random() % 5;
    setup.behaviour->nothing_at_hand = random() % 3 == 0;
    setup.behaviour->refused = random() % 10 == 0 ? 1 : 0;
    SCOPED_TRACE("run " + std::to_string(number) + " " + describe(setup));
    Driven run(setup);
    std::vector<std::shared_ptr<Batch>> planned;
    std::uint64_t delivered = 0;
    for (unsigned step = random() % 30; step > 0; --step) {
      while (planned.size() < setup.prefetch) planned.push_back(run.enqueue());
      run.engine->top_up(planned.size());
      switch (random() % 8) {
        case 0: run.cancel(planned, delivered = random() % 100); break;
        case 1:
          run.cancel(planned, delivered);
          run.change_batch_size(1 + random() % 12);
          break;
        case 2: run.engine->wait(*planned.back(), 50us); break;
        default:
          const auto batch = planned.front();
          if (run.finish(*batch) == Phase::Ready) {
            expect_whole(*batch);
            planned.erase(planned.begin());
            delivered = batch->plan.end;
          } else {
            ASSERT_THROW(std::rethrow_exception(batch->error), std::bad_alloc);
            run.cancel(planned, delivered);
          }
      }
      if (HasFailure()) return;
    }
    const bool drops = random() % 2 == 0;
    if (drops) planned.clear();  // the engine has them
    run.engine.reset();
    planned.clear();
    ASSERT_EQ(run.usage().batches, 0U);
    ASSERT_EQ(run.bound->fetched(), 0U);
  }
}

}  // namespace
}  // namespace penstock::testing
