// Which threads are awake: the numbers alone, and that alarms and calls end sleep.
#include "core/engine/crew.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

namespace penstock {
namespace {

using namespace std::chrono_literals;

// A crew whose threads do nothing but sleep when they are told to.
class CrewTest : public ::testing::Test {
 protected:
  void sleep_with(Crew& crew, std::size_t batches = 0) {
    threads_.emplace_back([this, &crew, batches] {
      std::unique_lock lock(mutex_);
      crew.sleep(lock, batches);
    });
  }
  void wait_until(const std::function<bool()>& condition) {
    for (int i = 0; i < 5000; ++i) {
      {
        const std::lock_guard lock(mutex_);
        if (condition()) return;
      }
      std::this_thread::sleep_for(1ms);
    }
    FAIL() << "it never came to that";
  }
  void end(Crew& crew) {
    {
      const std::lock_guard lock(mutex_);
      crew.dismiss();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

TEST_F(CrewTest, BesideAConsumerThatHelpsOnlySoManyAreAwakeAsHaveACore) {
  for (const auto& [threads, cores, beside] : {std::tuple{2U, 2U, 1U}, std::tuple{8U, 2U, 1U}, std::tuple{8U, 8U, 7U},
                                               std::tuple{1U, 1U, 1U}, std::tuple{3U, 4U, 3U}}) {
    Crew crew(threads, cores);
    EXPECT_EQ(crew.most_awake(), threads);
    crew.consumer_helps();
    EXPECT_EQ(crew.most_awake(), beside);
    EXPECT_EQ(crew.beside_consumer(), beside);
    crew.consumer_sleeps();
    EXPECT_EQ(crew.most_awake(), threads) << "for what the page cache does not have";
  }
}

TEST_F(CrewTest, NobodyIsCalledWhereNobodySleeps) {
  Crew crew(2, 4);
  EXPECT_FALSE(crew.call());
  EXPECT_FALSE(crew.all_asleep());
}

TEST_F(CrewTest, EachSleeperIsCalledOnce) {
  Crew crew(2, 4);
  sleep_with(crew);
  sleep_with(crew);
  wait_until([&] { return crew.all_asleep(); });
  {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(crew.call());
    EXPECT_TRUE(crew.call());
    EXPECT_FALSE(crew.call());
    EXPECT_FALSE(crew.all_asleep());
  }
  crew.notify();
  crew.notify();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

TEST_F(CrewTest, WhileTheConsumerHelpsOneThreadLessThanCoresIsAwake) {
  Crew crew(2, 2);
  EXPECT_FALSE(crew.is_crowded());
  crew.consumer_helps();
  EXPECT_TRUE(crew.is_crowded());
  sleep_with(crew);
  wait_until([&] { return !crew.is_crowded(); });
  {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(crew.call()) << "the other thread has the other core";
    crew.consumer_sleeps();
    EXPECT_TRUE(crew.call());
  }
  crew.notify();
  end(crew);
}

TEST_F(CrewTest, AConsumerThatIsAwayForLongerLeavesItsCore) {
  Crew crew(2, 2);
  bool crowded = false;  // at first; a busy machine may take the core away for longer
  for (int i = 0; i < 1000 && !crowded; ++i) {
    crew.consumer_helps();
    crew.consumer_leaves();
    crowded = crew.is_crowded();
  }
  EXPECT_TRUE(crowded);
  std::this_thread::sleep_for(2ms);
  EXPECT_FALSE(crew.is_crowded());
}

TEST_F(CrewTest, WhereCoresAreLeftNothingIsCrowded) {
  Crew crew(2, 3);
  crew.consumer_helps();
  EXPECT_FALSE(crew.is_crowded());
}

TEST_F(CrewTest, AnAlarmEndsSleepAtThePaceOfTheConsumer) {
  Crew crew(1, 2);
  for (int i = 0; i < 5; ++i) {
    crew.consumer_takes();
    std::this_thread::sleep_for(2ms);
  }
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  crew.sleep(lock, 3);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 5ms);
  EXPECT_FALSE(crew.all_asleep());
}

TEST_F(CrewTest, AfterAlarmsInVainOnlyACallHelps) {
  Crew crew(1, 2);
  for (int i = 0; i < 5; ++i) {
    crew.consumer_takes();
    std::this_thread::sleep_for(1ms);
  }
  for (int i = 0; i < 3; ++i) {
    std::unique_lock lock(mutex_);
    crew.sleep(lock, 1);
  }
  sleep_with(crew, 1);
  wait_until([&] { return crew.all_asleep(); });
  std::this_thread::sleep_for(30ms);
  {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(crew.all_asleep());
    EXPECT_FALSE(crew.is_on_watch());
    EXPECT_TRUE(crew.call());
  }
  crew.notify();
  threads_.front().join();
  threads_.clear();
}

}  // namespace
}  // namespace penstock
