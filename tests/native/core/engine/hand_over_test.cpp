// Batches that others finish: given out when the last row came back, with the error of the lowest one.
#include "core/engine/hand_over.h"

#include "tests/native/core/engine/loader_fixture.h"
#include "tests/native/message_of.h"

#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <thread>

namespace penstock::testing {
namespace {

using namespace std::chrono_literals;

/// Threads that give back what they take, after `finish` of each row.
class Takers {
 public:
  Takers(std::shared_ptr<HandOver> hand_over, unsigned count, const std::function<void(Batch&, std::uint64_t)>& finish)
      : hand_over_(std::move(hand_over)) {
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this, finish] {
        while (!hand_over_->closed()) {
          const HandOver::Rows rows = hand_over_->take(5ms);
          if (!rows.batch) continue;
          std::exception_ptr error;
          try {
            for (std::uint64_t row = rows.first; row < rows.last; ++row) finish(*rows.batch, row);
          } catch (...) {
            error = std::current_exception();
          }
          hand_over_->give_back(rows, error);
        }
      });
    }
  }
  ~Takers() {
    for (std::thread& each : threads_) each.join();
  }
  Takers(const Takers&) = delete;
  Takers& operator=(const Takers&) = delete;

 private:
  std::shared_ptr<HandOver> hand_over_;
  std::vector<std::thread> threads_;
};

LoaderOptions handing_over(const Case& setup, const std::shared_ptr<HandOver>& hand_over) {
  LoaderOptions options = options_of(setup);
  options.hand_over = hand_over;
  return options;
}

TEST(HandOver, EveryRowIsFinishedOnceBeforeItsBatchIsGivenOut) {
  for (const Case& setup : cases(each(&Case::fetch, {1, 7}), each(&Case::threads, {1, 3}), each(&Case::window, {5, 0}),
                                 each(&Case::lends, {false, true}))) {
    for (const unsigned takers : {1U, 3U}) {
      const auto hand_over = std::make_shared<HandOver>(takers);
      Loader loader(handing_over(setup, hand_over));
      std::mutex mutex;
      std::map<std::uint64_t, std::uint64_t> finished;  // rows, by where their batch begins
      auto threads = std::make_unique<const Takers>(hand_over, takers, [&](Batch& batch, std::uint64_t) {
        const std::lock_guard lock(mutex);
        ++finished[batch.plan.position];
      });
      std::uint64_t batches = 0;
      while (const auto batch = next(loader)) {
        expect_whole(*batch);
        const std::lock_guard lock(mutex);
        EXPECT_EQ(finished[batch->plan.position], batch->plan.valid);
        ++batches;
      }
      EXPECT_GT(batches, 2U);
      loader.close();
      threads.reset();
      EXPECT_EQ(loader.usage().batches, 0U);
    }
  }
}

TEST(HandOver, TheErrorOfTheLowestRowIsTheBatchsAndItComesAgain) {
  const Case setup;
  const auto hand_over = std::make_shared<HandOver>(2);
  Loader loader(handing_over(setup, hand_over));
  const Takers threads(hand_over, 2, [&](Batch& batch, std::uint64_t row) {
    if (batch.plan.position != setup.batch || row == 0) return;
    if (row == 1) std::this_thread::sleep_for(2ms);  // the others fail first
    raise(ErrorKind::InvalidArgument, "row {}", row);
  });
  EXPECT_NE(next(loader), nullptr);
  for (int attempt = 0; attempt < 2; ++attempt) {
    expect_error([&] { next(loader); }, ErrorKind::InvalidArgument, "row 1");
    EXPECT_EQ(loader.position(), setup.batch);
  }
  loader.close();
}

TEST(HandOver, ASeekWhileRowsAreOutForgetsThem) {
  Case setup;
  setup.epochs = std::nullopt;
  const auto hand_over = std::make_shared<HandOver>(2);
  LoaderOptions options = handing_over(setup, hand_over);
  options.max_bytes = 0;  // what is forgotten must come back before the next batch has memory
  Loader loader(std::move(options));
  auto threads =
      std::make_unique<const Takers>(hand_over, 2, [](Batch&, std::uint64_t) { std::this_thread::sleep_for(200us); });
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t position = random() % 100;
    loader.seek(position);
    const auto batch = next(loader);
    EXPECT_EQ(batch->plan.position, position);
    expect_whole(*batch);
  }
  loader.close();
  threads.reset();
  EXPECT_EQ(loader.usage().batches, 0U);
}

TEST(HandOver, AClosedOneGivesNothingAndTakesNothing) {
  const auto hand_over = std::make_shared<HandOver>(1);
  Loader loader(handing_over({}, hand_over));
  EXPECT_EQ(loader.poll(), nullptr);
  HandOver::Rows rows;
  while (!rows.batch) rows = hand_over->take(1ms);
  loader.close();
  EXPECT_TRUE(hand_over->closed());
  EXPECT_EQ(hand_over->take(1ms).batch, nullptr);
  hand_over->give_back(rows, nullptr);
}

TEST(HandOver, ABatchThatIsCancelledAsItComesIsNotKept) {
  HandOver hand_over(1);
  hand_over.open([](Batch&, const std::exception_ptr&) { FAIL(); });
  const auto batch = std::make_shared<Batch>();
  batch->plan.valid = 3;
  batch->cancelled = true;
  hand_over.cancel_all();
  hand_over.put(batch);
  EXPECT_TRUE(hand_over.idle());
}

TEST(HandOver, AnotherEngineMayOpenItAgain) {
  HandOver hand_over(1);
  const auto put = [&] {
    const auto batch = std::make_shared<Batch>();
    batch->plan.valid = 2;
    hand_over.put(batch);
    return batch;
  };
  std::vector<const Batch*> finished;
  const auto finish = [&](Batch& batch, const std::exception_ptr&) { finished.push_back(&batch); };
  hand_over.open(finish);
  put();
  const HandOver::Rows lost = hand_over.take(1ms);
  hand_over.detach();
  EXPECT_TRUE(hand_over.idle() && !hand_over.closed());
  hand_over.open(finish);
  const auto second = put();
  hand_over.give_back(lost, nullptr);
  for (HandOver::Rows rows = hand_over.take(1ms); rows.batch; rows = hand_over.take(1ms)) {
    hand_over.give_back(rows, nullptr);
  }
  EXPECT_EQ(finished, std::vector<const Batch*>{second.get()});
}

}  // namespace
}  // namespace penstock::testing
