// Batches are used again, counted, and find home after their pool's owner has gone.
#include "core/batch/batch_pool.h"

#include "tests/native/core/engine/loader_fixture.h"

#include <random>
#include <set>
#include <stdexcept>
#include <thread>

namespace penstock::testing {
namespace {

TEST(BatchPool, AnUnusedBatchKeepsNothingOfOthers) {
  const auto pool = BatchPool::make(2);
  const auto keeps = std::make_shared<int>(0);
  const auto lender = std::make_shared<std::vector<std::byte>>(64);
  auto batch = pool->take();
  batch->slab.lend(lender->data(), lender->size(), lender);
  pool->account(*batch);
  EXPECT_EQ(pool->usage().bytes, 64U);
  batch->error = std::make_exception_ptr(std::runtime_error("before"));
  batch->cancelled = true;
  batch->rows.resize(1);
  batch->fetched.push_back(batch->rows.data());
  batch->fetches.push_back(std::shared_ptr<Stretch>(keeps, nullptr));  // no stretch, but as one is kept
  batch.reset();
  EXPECT_EQ(keeps.use_count(), 1);
  EXPECT_EQ(lender.use_count(), 1);
  EXPECT_EQ(pool->usage().bytes, 0U);
  batch = pool->take();
  EXPECT_FALSE(batch->error || batch->cancelled || !batch->fetched.empty());
}

TEST(BatchPool, CountsBatchesInUseAndWhatTheyHold) {
  const auto pool = BatchPool::make(1);
  const auto expect_usage = [&](std::uint64_t batches, std::uint64_t bytes) {
    EXPECT_EQ(pool->usage().batches, batches);
    EXPECT_EQ(pool->usage().bytes, bytes);
  };
  auto first = pool->take();
  auto second = pool->take();
  first->slab.ensure(1'000);
  second->slab.ensure(100'000);
  expect_usage(2, 0);
  pool->account(*first);
  pool->account(*second);
  expect_usage(2, first->slab.bytes() + second->slab.bytes());
  EXPECT_EQ(first->accounted_bytes, first->slab.bytes());
  first->slab.ensure(300'000);
  pool->account(*first);
  pool->account(*first);
  expect_usage(2, first->slab.bytes() + second->slab.bytes());  // once, however often
  first.reset();
  expect_usage(1, second->slab.bytes());
  second.reset();
  expect_usage(0, 0);
  first = pool->take();
  expect_usage(1, 0);  // memory that it kept counts again when it is accounted
  pool->account(*first);
  EXPECT_GT(first->slab.bytes(), 0U);
  expect_usage(1, first->slab.bytes());
}

TEST(BatchPool, GivesBatchesAgainWithTheirMemoryAndKeepsNoMoreThanItIsTold) {
  const auto pool = BatchPool::make(2);
  std::vector<std::shared_ptr<Batch>> batches;
  for (int i = 0; i < 4; ++i) {
    batches.push_back(pool->take());
    batches.back()->slab.ensure(5'000);
    batches.back()->rows.resize(3);
    batches.back()->rows[2].arena.allocate(100);
  }
  const std::uint64_t held = batches[0]->held_bytes();
  EXPECT_EQ(held, batches[0]->slab.bytes() + batches[0]->rows[2].arena.capacity_bytes());
  batches.clear();
  std::multiset<std::uint64_t> found;
  for (int i = 0; i < 4; ++i) {
    batches.push_back(pool->take());
    found.insert(batches.back()->held_bytes());
  }
  EXPECT_EQ(found, (std::multiset<std::uint64_t>{0, 0, held, held}));
  EXPECT_EQ(std::set(batches.begin(), batches.end()).size(), 4U) << "one that is in use is nobody else's";
}

TEST(BatchPool, OutlivesItsOwnerWhileABatchIsHeld) {
  auto pool = BatchPool::make(2);
  const std::weak_ptr<BatchPool> watched = pool;
  auto held = pool->take();
  auto other = pool->take();
  held->slab.ensure(100);
  pool.reset();
  ASSERT_FALSE(watched.expired());
  other.reset();
  EXPECT_EQ(watched.lock()->usage().batches, 1U);
  held->slab.data()[99] = std::byte{1};
  held.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(BatchPool, AnyThreadMayTakeAndLetGo) {
  auto pool = BatchPool::make(3);
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number) {
    threads.emplace_back([pool, number] {
      std::mt19937 random(number);
      std::vector<std::shared_ptr<Batch>> held;
      for (int i = 0; i < 2'000; ++i) {
        if (random() % 2 == 0 || held.empty()) {
          held.push_back(pool->take());
          held.back()->slab.ensure(random() % 10'000);
          pool->account(*held.back());
        } else {
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->usage().batches, 0U);
  EXPECT_EQ(pool->usage().bytes, 0U);
}

// Another thread of the parent may have held the mutex: the child neither locks it nor recycles anything.
TEST(BatchPool, AForkedChildLetsItsBatchesBe) {
  const auto pool = BatchPool::make(2);
  auto batch = pool->take();
  EXPECT_TRUE(is_true_in_child([&] {
    batch.reset();
    return pool->usage().batches == 1;
  }));
}

}  // namespace
}  // namespace penstock::testing
