// The engine's threads and the consumer at work on batches together, seen through a loader.
#include "core/engine/engine.h"

#include "tests/native/core/engine/loader_fixture.h"
#include "tests/native/message_of.h"

#include <chrono>
#include <random>
#include <thread>

namespace penstock::testing {
namespace {

using namespace std::chrono_literals;

void expect_nothing_held(Loader& loader) {
  loader.close();
  EXPECT_EQ(loader.usage().batches, 0U);
  EXPECT_EQ(loader.metrics().memory_bytes, 0U) << "neither of batches nor of fetches";
}

TEST(Engine, AFailedBatchTellsOfItsLowestRowWhicheverFailedFirst) {
  for (const Case& setup :
       cases(each(&Case::fetch, {1, 7}), each(&Case::threads, {1, 1, 1, 3, 3, 3}), each(&Case::late, {false, true}))) {
    setup.behaviour->late = setup.late;  // the last of several reads is the first to end
    MemoryStore store(setup.behaviour);
    const File file = store.put("file", telling_bytes(100, 0));
    const auto source = std::make_shared<ScriptedSource>(4, [&](Row& row, unsigned round, Reads& out) {
      if (round == 0) return ScriptedSource::read(file, row.index * 4, 4, row.records, out);
      if (row.index > 4) raise(ErrorKind::IoError, "row {}", row.index);
      return false;
    });
    Loader loader(options_of(setup, std::make_shared<IdentityOrder>(23, setup.fetch), {plain_format(source)}));
    EXPECT_EQ(next(loader)->plan.end, 4U);
    for (int attempt = 0; attempt < 2; ++attempt) {
      expect_error([&] { next(loader); }, ErrorKind::IoError, "row 5");
    }
    expect_nothing_held(loader);
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
    Loader loader(options_of({}, std::make_shared<Broken>(23, fetch), {format_of({}, 5)}));
    expect_error([&] { next(loader); }, ErrorKind::Corruption, "no such position");
    expect_nothing_held(loader);
  }
}

TEST(Engine, PatienceEnds) {
  const Case setup{.late = true};
  setup.behaviour->delay = 20ms;
  Loader loader(options_of(setup));
  EXPECT_FALSE(loader.poll());
  const auto began = std::chrono::steady_clock::now();
  loader.wait(2ms);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
  EXPECT_TRUE(next(loader));
}

// Runs under ThreadSanitizer, too: consumers that do all they may, in no order, and stop in any phase.
TEST(Engine, ShortRunsWithRandomMoves) {
  std::mt19937 random(11);
  const auto end = std::chrono::steady_clock::now() + 1500ms;
  for (int number = 0; std::chrono::steady_clock::now() < end; ++number) {
    Case setup;
    setup.window = random() % 2 == 0 ? 5 : 0;
    setup.count = 1 + random() % 60;
    setup.batch = 1 + random() % 9;
    setup.fetch = std::vector<std::uint64_t>{1, 3, 16, 60}[random() % 4];
    setup.threads = 1 + random() % 4;
    setup.prefetch = 1 + random() % 6;
    setup.max_bytes = random() % 2 == 0 ? 1 << 20 : 1;
    setup.lends = random() % 2 == 0;
    setup.epochs = std::nullopt;
    setup.late = random() % 3 == 0;
    setup.behaviour->delay = random() % 3 * 20us;
    setup.behaviour->near_bytes = random() % 2 * 40;
    setup.behaviour->miss_every = 1 + random() % 5;
    setup.behaviour->nothing_at_hand = random() % 3 == 0;
    setup.behaviour->refused = random() % 10 == 0 ? 1 : 0;
    SCOPED_TRACE("run " + std::to_string(number) + " " + describe(setup));
    const LoaderOptions options = options_of(setup);
    Loader loader(options);
    std::uint64_t position = 0;
    std::uint64_t size = 0;  // that was set for the next batch
    std::shared_ptr<Batch> held;
    for (unsigned step = random() % 30; step > 0; --step) {
      switch (random() % 8) {
        case 0:
          loader.seek(position = random() % 100);
          size = 0;
          break;
        case 1: loader.set_global_batch_size(size = 1 + random() % 12); break;
        case 2: loader.wait(50us); break;
        default:
          try {
            held = next(loader);
            ASSERT_EQ(held->plan.position, position);
            expect_right(*held, options.job->order());
            ASSERT_TRUE(size == 0 || held->plan.rows == size);
            size = 0;
            position = held->plan.end;
          } catch (const Error& error) {
            ASSERT_EQ(error.kind(), ErrorKind::InvalidArgument);
            ASSERT_NE(std::string(error.what()).find("no memory for a batch"), std::string::npos) << error.what();
          }
      }
      ASSERT_EQ(loader.position(), position);
      if (HasFailure()) return;
    }
    std::this_thread::sleep_for(random() % 5 * 80us);
    loader.close();
    if (held) expect_whole(*held);
    held.reset();
    expect_nothing_held(loader);
  }
}

}  // namespace
}  // namespace penstock::testing
