// Blocks of indices that a function gives: kept, asked for ahead, once for all who wait; errors, cancelling, forks. The
// thread that answers is the test's own and knows no Python.
#include "bindings/asked_blocks.h"

#include "core/base/error.h"
#include "core/job/pick_wait.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <stdexcept>

namespace penstock::bindings {
namespace {

using namespace std::chrono_literals;
using BlocksPtr = std::shared_ptr<AskedBlocks>;

constexpr std::uint64_t kLength = 10 * shuffle::Asked::kBlock + 3;

std::vector<std::uint64_t> answer_to(const AskedBlocks::Request& call) {
  std::vector<std::uint64_t> indices(call.count);
  for (std::uint64_t i = 0; i < call.count; ++i) indices[i] = (call.first + i + 1000 * call.epoch) % 7777;
  return indices;
}

AskedFunction function(std::uint64_t observations = 7777) {
  return {"orders.Custom 'f', version 1", kLength, observations};
}

// Takes calls until there are no more.
class Answering {
 public:
  using Serve = std::function<void(AskedBlocks&, const AskedBlocks::Call&)>;
  explicit Answering(BlocksPtr blocks, Serve serve = {}) : blocks_(std::move(blocks)) {
    if (!serve) serve = [](AskedBlocks& all, const AskedBlocks::Call& call) { all.give(call, answer_to(*call)); };
    thread_ = std::thread([this, serve = std::move(serve)] {
      while (const AskedBlocks::Call call = blocks_->take()) {
        ++calls;
        serve(*blocks_, call);
      }
    });
  }
  ~Answering() {
    blocks_->stop();
    thread_.join();
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  std::atomic<std::uint64_t> calls = 0;

 private:
  const BlocksPtr blocks_;
  std::thread thread_;
};

void wait_until(const std::function<bool()>& is_so) {
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!is_so() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(is_so());
}

TEST(AskedBlocks, GivesEachBlockOnceAndAsksForTheNextOneAhead) {
  const BlocksPtr blocks = AskedBlocks::make(function());
  Answering answering(blocks);
  EXPECT_EQ(blocks->find(0, 2), nullptr);
  EXPECT_EQ(*blocks->get(0, 2), answer_to({0, 2, 2 * shuffle::Asked::kBlock, shuffle::Asked::kBlock}));
  wait_until([&] { return blocks->find(0, 3) != nullptr; });
  wait_until([&] { return blocks->find(0, 4) != nullptr; });
  EXPECT_EQ(blocks->get(0, 2), blocks->find(0, 2));
  blocks->note_end(2);
  EXPECT_EQ(blocks->get(1, 10)->size(), 3U);  // the last of the run, after which none is asked for ahead
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(answering.calls, 5U);  // 2 to 5 of epoch 0, 10 of epoch 1
  EXPECT_EQ(blocks->find(2, 0), nullptr);
  blocks->note_end(3);  // of a longer job
  EXPECT_NE(blocks->find(1, 10), nullptr);
  wait_until([&] { return blocks->find(2, 0) != nullptr; });
}

TEST(AskedBlocks, ABlockThatFailsAheadIsAskedForAgainByThoseWhoNeedItAlone) {
  const BlocksPtr blocks = AskedBlocks::make(function());
  std::atomic<bool> fails = true;
  Answering answering(blocks, [&](AskedBlocks& all, const AskedBlocks::Call& call) {
    if (call->epoch == 1 && fails) return all.fail(call, std::make_exception_ptr(std::runtime_error("of the user")));
    all.give(call, answer_to(*call));
  });
  EXPECT_EQ(blocks->get(0, 10)->size(), 3U);
  wait_until([&] { return answering.calls == 2; });
  std::this_thread::sleep_for(10ms);
  for (int i = 0; i < 5; ++i) EXPECT_NE(blocks->find(0, 10), nullptr);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(answering.calls, 2U);
  EXPECT_THROW((void)blocks->get(1, 0), std::runtime_error);
  fails = false;
  EXPECT_EQ(blocks->get(1, 0)->size(), shuffle::Asked::kBlock);
}

TEST(AskedBlocks, ManyWhoWaitForOneBlockAskOnce) {
  const BlocksPtr blocks = AskedBlocks::make(function());
  blocks->note_end(4);
  std::promise<void> may_answer;
  Answering answering(blocks, [&](AskedBlocks& all, const AskedBlocks::Call& call) {
    may_answer.get_future().wait();
    all.give(call, answer_to(*call));
  });
  std::vector<std::future<shuffle::IndexBlock>> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(std::async(std::launch::async, [&] { return blocks->get(3, 10); }));
  }
  wait_until([&] { return answering.calls == 1; });
  std::this_thread::sleep_for(10ms);
  may_answer.set_value();
  for (auto& each : waiting) EXPECT_EQ(*each.get(), answer_to({3, 10, 10 * shuffle::Asked::kBlock, 3}));
  EXPECT_EQ(answering.calls, 1U);
}

TEST(AskedBlocks, AnErrorIsOfThoseWhoWaitAndTheFunctionIsAskedAgain) {
  const BlocksPtr blocks = AskedBlocks::make(function());
  std::atomic<bool> fails = true;
  Answering answering(blocks, [&](AskedBlocks& all, const AskedBlocks::Call& call) {
    if (fails.exchange(false)) return all.fail(call, std::make_exception_ptr(std::runtime_error("of the user")));
    all.give(call, answer_to(*call));
  });
  EXPECT_THROW((void)blocks->get(0, 10), std::runtime_error);
  EXPECT_EQ(blocks->get(0, 10)->size(), 3U);
}

TEST(AskedBlocks, AnIndexThatTheViewLacksIsNamedByEpochAndPosition) {
  const BlocksPtr blocks = AskedBlocks::make(function(5));
  Answering answering(blocks, [&](AskedBlocks& all, const AskedBlocks::Call& call) {
    std::vector<std::uint64_t> indices(call->count, 4);
    if (call->epoch == 1) indices[2] = 5;
    if (call->epoch == 2) indices.pop_back();
    all.give(call, indices);
  });
  EXPECT_EQ(blocks->get(0, 10)->size(), 3U);
  EXPECT_EQ(penstock::testing::message_of([&] { (void)blocks->get(1, 10); }, ErrorKind::InvalidArgument),
            "orders.Custom 'f', version 1: epoch 1, position 655,362: index 5, and there are 5 observations");
  penstock::testing::expect_error([&] { (void)blocks->get(2, 10); }, ErrorKind::InvalidArgument,
                                  "epoch 2, positions 655,360 to 655,362: 2 indices for 3 positions");
}

TEST(AskedBlocks, AWaitEndsWhenNobodyWantsThePicksOrASignalCame) {
  const BlocksPtr blocks = AskedBlocks::make(function());  // no thread answers
  std::atomic<bool> cancelled = false;
  auto waiting = std::async(std::launch::async, [&] {
    const PicksWanted wanted(cancelled);
    (void)blocks->get(0, 0);
  });
  EXPECT_EQ(waiting.wait_for(60ms), std::future_status::timeout);
  cancelled = true;
  EXPECT_THROW(waiting.get(), PicksCancelled);
  EXPECT_FALSE(PicksWanted::are_cancelled());
  int looks = 0;
  const auto interrupts = [&] {
    if (++looks == 3) throw std::runtime_error("Ctrl-C");
  };
  EXPECT_THROW((void)blocks->get(0, 0, interrupts), std::runtime_error);
  // What nobody waits for any more is not asked for, nor what comes after the end.
  blocks->note_end(6);
  Answering answering(blocks);
  EXPECT_EQ(blocks->get(5, 10)->size(), 3U);
  EXPECT_EQ(answering.calls, 1U);
}

TEST(AskedBlocks, AFunctionThatAsksForItsOwnOrderIsRefusedAndOneThatIsStoppedToo) {
  const BlocksPtr blocks = AskedBlocks::make(function());
  {
    Answering answering(blocks, [&](AskedBlocks& all, const AskedBlocks::Call& call) {
      try {
        (void)all.get(9, 9);
      } catch (...) {
        all.fail(call, std::current_exception());
      }
    });
    penstock::testing::expect_error([&] { (void)blocks->get(0, 0); }, ErrorKind::InvalidArgument, "asks for the order");
  }
  penstock::testing::expect_error([&] { (void)blocks->get(0, 0); }, ErrorKind::InvalidArgument, "called no more");
}

TEST(AskedBlocks, ACFunctionIsCalledByWhoNeedsItsBlock) {
  std::atomic<int> calls = 0;
  const BlocksPtr blocks =
      AskedBlocks::make(function(), [&](std::uint32_t epoch, std::uint64_t first, std::span<std::uint64_t> out) {
        ++calls;
        if (epoch == 7) raise(ErrorKind::InvalidArgument, "seven");
        for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = (first + i) % 7777;
      });
  std::vector<std::future<shuffle::IndexBlock>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(std::async(std::launch::async, [&] { return blocks->get(0, 3); }));
  for (auto& each : waiting) EXPECT_EQ((*each.get())[1], (3 * shuffle::Asked::kBlock + 1) % 7777);
  EXPECT_EQ(calls, 1);
  EXPECT_THROW((void)blocks->get(7, 0), Error);
  EXPECT_THROW((void)blocks->get(7, 0), Error);
  for (std::uint64_t number = 0; number < 11; ++number) EXPECT_NE(blocks->get(0, number), nullptr);
  EXPECT_EQ(calls, 3 + 10);  // block 3 was kept
  EXPECT_NE(blocks->get(0, 0), nullptr);
  EXPECT_EQ(calls, 3 + 11);  // eight are
  EXPECT_THROW(AskedBlocks::make({"f", 0, 1}), Error);
}

TEST(AskedBlocks, AChildAfterAForkRefusesToWaitAndCallsCFunctionsItself) {
  const BlocksPtr waits = AskedBlocks::make(function());
  const BlocksPtr computes =
      AskedBlocks::make(function(), [](std::uint32_t, std::uint64_t first, std::span<std::uint64_t> out) {
        for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = (first + i) % 7777;
      });
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_right = waits->find(0, 0) == nullptr;
    try {
      (void)waits->get(0, 0);
      is_right = false;
    } catch (const Error&) {
    }
    waits->stop();
    is_right &= (*computes->get(0, 1))[0] == shuffle::Asked::kBlock % 7777 && computes->get(0, 10)->size() == 3;
    ::_exit(is_right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace penstock::bindings
