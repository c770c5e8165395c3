// What the engine asks of threads of Python's: answers, pauses, deadlines, and leaving with calls under way. The
// threads here are the test's own and know no Python. (What errors say: tests/python/places/test_store_faults.py.)
#include "bindings/python_calls.h"

#include "bindings/python_channel.h"
#include "core/base/error.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <thread>

namespace penstock::bindings {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Calls = std::shared_ptr<PythonCalls>;

std::vector<std::byte> bytes_at(std::uint64_t offset, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (std::uint64_t i = offset; i < offset + size; ++i) bytes[i - offset] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

void answer(PythonCalls& calls, const PythonCalls::Call& call) {
  std::vector<std::vector<std::byte>> bytes;
  for (const auto& request : call.requests) bytes.push_back(bytes_at(request->offset, request->size));
  const std::vector<std::span<const std::byte>> spans(bytes.begin(), bytes.end());
  calls.give(call.requests, spans);
}

// Threads that take calls as those of Python's do (penstock/_places/stores/threads.py), until the calls are stopped.
class Workers {
 public:
  using Serve = std::function<void(const PythonCalls::Call&)>;

  explicit Workers(Calls calls, Serve serve = {}) : calls_(std::move(calls)), serve_(std::move(serve)) {
    if (!serve_) serve_ = [this](const auto& call) { answer(*calls_, call); };
    start();
  }
  ~Workers() {
    calls_->stop();
    for (std::thread ended = take_thread(); ended.joinable(); ended = take_thread()) ended.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  [[nodiscard]] std::size_t count() {
    const std::lock_guard lock(mutex_);
    return threads_.size();
  }

 private:
  void start() {
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this] {
      while (const auto call = calls_->take()) {
        if (call->wants_thread) start();
        serve_(*call);
      }
    });
  }

  // One that is not joined yet, and may still start another.
  std::thread take_thread() {
    const std::lock_guard lock(mutex_);
    if (threads_.empty()) return {};
    std::thread taken = std::move(threads_.back());
    threads_.pop_back();
    return taken;
  }

  const Calls calls_;
  Serve serve_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

// Reads of ranges of some files, and where they go.
struct Ranges {
  explicit Ranges(std::size_t count, std::uint64_t size = 100, std::uint64_t apart = 1000) : into(count) {
    for (std::size_t i = 0; i < count; ++i) {
      into[i].resize(size);
      Read read;
      read.file = &files[0];
      read.offset = i * apart;
      read.size = size;
      read.destination = into[i].data();
      reads.push_back(read);
    }
    for (Read& read : reads) pointers.push_back(&read);
  }

  [[nodiscard]] bool are_right() const {
    return std::all_of(reads.begin(), reads.end(), [&](const Read& read) {
      const std::vector<std::byte>& bytes = into[static_cast<std::size_t>(&read - reads.data())];
      return read.outcome == Outcome::Done && bytes == bytes_at(read.offset, read.size);
    });
  }

  std::array<File, 2> files{File("bucket/a", 1 << 20), File("bucket/b", 1 << 20)};
  std::vector<std::vector<std::byte>> into;
  std::vector<Read> reads;
  std::vector<Read*> pointers;
};

/// Ranges that are asked for through a channel.
struct Asked : Ranges {
  Asked(CallOptions options, std::size_t count, std::uint64_t size = 100, std::uint64_t apart = 1000)
      : Ranges(count, size, apart), calls(PythonCalls::make(options)), channel(calls) {}

  void submit() { submit(0, pointers.size()); }
  void submit(std::size_t first, std::size_t count) { channel.submit({pointers.data() + first, count}); }
  /// Takes a call, answers it and says how many ranges it had.
  std::size_t serve() {
    const auto call = calls->take();
    answer(*calls, *call);
    return call->requests.size();
  }
  /// Waits for so many reads that end; fails after ten seconds.
  void collect(std::size_t count) {
    std::array<Read*, 16> some{};
    std::size_t ended = 0;
    const Clock::time_point until = Clock::now() + 10s;
    while (ended < count && Clock::now() < until) ended += channel.wait(some, 100ms);
    EXPECT_EQ(ended, count);
  }
  /// What the error of a read says.
  std::string message(std::size_t i) const {
    if (!reads[i].error) return "no error";
    return testing::message_of([&] { std::rethrow_exception(reads[i].error); }, ErrorKind::IoError);
  }

  Calls calls;
  PythonChannel channel;
};

CallOptions options(std::size_t connections, std::size_t ranges_a_call, std::chrono::nanoseconds deadline = 3600s) {
  return {connections, ranges_a_call, deadline};
}

TEST(PythonCalls, EachReadGetsItsBytesWithNoMoreThanTheConnectionsUnderWay) {
  Asked asked(options(4, 1), 200);
  std::atomic<int> under_way{0};
  std::atomic<int> most{0};
  Workers workers(asked.calls, [&](const auto& call) {
    const int now = ++under_way;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(1ms);
    --under_way;
    answer(*asked.calls, call);
  });
  asked.submit();
  asked.collect(200);
  EXPECT_TRUE(asked.are_right());
  EXPECT_EQ(most, 4);
  EXPECT_LE(workers.count(), 5U);
}

TEST(PythonCalls, RangesOfOneFileShareACallAndNeighboursAreOneRange) {
  Asked asked(options(64, 3), 8);
  for (const std::size_t i : {1, 4}) asked.reads[i].file = &asked.files[1];
  asked.submit();
  for (const auto& [path, count] : {std::pair("bucket/a", 3U), {"bucket/b", 2U}, {"bucket/a", 3U}}) {
    const auto call = asked.calls->take();
    EXPECT_EQ(call->path, path);
    EXPECT_EQ(call->requests.size(), count);
    answer(*asked.calls, *call);
  }
  asked.collect(8);
  EXPECT_TRUE(asked.are_right());
  Asked neighbours(options(64, 1), 5, 100, 100);
  neighbours.submit();
  EXPECT_EQ(neighbours.serve(), 1U);
  neighbours.collect(5);
  EXPECT_TRUE(neighbours.are_right());
}

TEST(PythonCalls, WhatFailedIsAskedForAloneAfterAPauseThatHasABound) {
  Asked asked(options(64, 4), 7);
  asked.submit(0, 4);
  auto call = asked.calls->take();
  ASSERT_EQ(call->requests.size(), 4U);
  const Clock::time_point failed = Clock::now();
  asked.calls->again(call->requests, "it fails", false);
  for (int i = 0; i < 4; ++i) {
    call = asked.calls->take();
    EXPECT_EQ(call->requests.size(), 1U);
    EXPECT_GE(Clock::now(), call->requests[0]->due);
    if (i < 3) answer(*asked.calls, *call);
  }
  EXPECT_LT(Clock::now() - failed, 100ms + 2s);  // this machine may be slow
  asked.calls->again(call->requests, "it fails", false);
  std::this_thread::sleep_until(call->requests[0]->due);
  asked.submit(4, 3);
  EXPECT_EQ(asked.serve(), 1U) << "it gets no company of what is new";
  EXPECT_EQ(asked.serve(), 3U);
  asked.collect(7);
  EXPECT_TRUE(asked.are_right());
  std::uint64_t retries = 0;
  for (const Read& read : asked.reads) retries += read.retries;
  EXPECT_EQ(retries, 5U);  // of four, one of them twice
}

TEST(PythonCalls, AnswersOfAnotherLengthAndServersThatHaveAnsweredAreAskedAgain) {
  Asked asked(options(64, 1), 2);
  std::atomic<int> count{0};
  const Workers workers(asked.calls, [&](const auto& call) {
    const int number = count++;
    if (number > 1 && number < 6) return asked.calls->again(call.requests, "refused", true);
    if (number > 0) return answer(*asked.calls, call);
    const std::vector<std::byte> cut = bytes_at(0, 99);
    const std::span<const std::byte> span(cut);
    asked.calls->give(call.requests, {&span, 1});
  });
  for (const std::size_t i : {0, 1}) {
    asked.submit(i, 1);
    asked.collect(1);
  }
  EXPECT_TRUE(asked.are_right());
  EXPECT_EQ(asked.reads[0].retries, 1U);
  EXPECT_EQ(asked.reads[1].retries, 4U);
}

TEST(PythonCalls, ACallThatNeverReturnsIsLeftAtTheDeadlineAndItsAnswerGoesNowhere) {
  auto asked = std::make_unique<Asked>(options(64, 1, 200ms), 1);
  std::promise<void> returns;
  const std::shared_future<void> returned = returns.get_future().share();
  Workers workers(asked->calls, [&, calls = asked->calls](const auto& call) {
    returned.wait();
    answer(*calls, call);
  });
  asked->submit();
  asked->collect(1);
  EXPECT_TRUE(asked->message(0).ends_with("the last had not returned")) << asked->message(0);
  asked.reset();  // sanitizers tell if somebody writes there now
  returns.set_value();
}

TEST(PythonCalls, ReadsThatNobodyWantsEndWhetherQueuedOrUnderWay) {
  Asked asked(options(1, 1), 2);
  std::atomic<bool> cancelled{false};
  for (Read& read : asked.reads) read.cancelled = &cancelled;
  asked.submit();
  const auto call = asked.calls->take();  // the second waits for the connection
  cancelled = true;
  asked.collect(2);
  for (const Read& read : asked.reads) EXPECT_EQ(read.outcome, Outcome::Done);
  answer(*asked.calls, *call);
  EXPECT_EQ(asked.into[0], std::vector<std::byte>(100));
}

TEST(PythonCalls, WakingEndsAWait) {
  Asked asked(options(1, 1), 1);
  asked.submit();
  std::thread waker([&] {
    std::this_thread::sleep_for(20ms);
    asked.channel.wake();
  });
  std::array<Read*, 1> done{};
  EXPECT_EQ(asked.channel.wait(done, 100s), 0U);
  waker.join();
  EXPECT_EQ(asked.channel.wait(done, 1ms), 0U);
}

// Under ThreadSanitizer and AddressSanitizer: nothing is copied to where a channel's reads were once it is gone.
TEST(PythonCalls, ChannelsAreLeftWhileAnswersAreCopied) {
  const Calls calls = PythonCalls::make(options(8, 4));
  const Workers workers(calls);
  std::vector<std::thread> askers;
  for (int i = 0; i < 3; ++i) {
    askers.emplace_back([&calls, i] {
      for (int round = 0; round < 200; ++round) {
        Ranges ranges(20, 3000);
        PythonChannel channel(calls);
        channel.submit(ranges.pointers);
        std::array<Read*, 20> done{};
        if ((round + i) % 3 != 0) (void)channel.wait(done, std::chrono::microseconds(round % 50));
      }
    });
  }
  for (auto& asker : askers) asker.join();
}

TEST(PythonCalls, StoppingFailsWhatIsQueuedEndsThreadsAndAsksForNothingAgain) {
  Asked asked(options(2, 1), 4);
  asked.submit(0, 3);
  const auto first = asked.calls->take();
  const auto second = asked.calls->take();
  asked.calls->stop();
  EXPECT_FALSE(asked.calls->take());
  asked.collect(1);
  answer(*asked.calls, *first);  // what was under way still counts
  asked.calls->again(second->requests, "it fails", false);
  asked.collect(2);
  EXPECT_EQ(asked.into[0], bytes_at(0, 100));
  for (const std::size_t i : {1, 2}) {
    EXPECT_TRUE(asked.message(i).ends_with("its store is read no more: Python ends")) << asked.message(i);
  }
  EXPECT_THROW(asked.submit(3, 1), Error);
}

TEST(PythonCalls, ThreadsAreWantedWhileNoneIsIdleAndNotBeyondTheConnections) {
  Asked asked(options(2, 1), 3);
  asked.submit();
  const auto first = asked.calls->take();
  EXPECT_TRUE(first->wants_thread);
  asked.calls->has_no_thread();  // it could not be started: the next one that takes a call wants it again
  answer(*asked.calls, *first);
  const auto second = asked.calls->take();
  EXPECT_TRUE(second->wants_thread);
  const auto third = asked.calls->take();
  EXPECT_TRUE(third->wants_thread);  // the one that waits while both connections are in use
  answer(*asked.calls, *second);
  answer(*asked.calls, *third);
  asked.collect(3);
  EXPECT_TRUE(asked.are_right());
}

TEST(PythonCalls, WhatWaitsLongBehindCallsThatReturnDoesNotFail) {
  Asked asked(options(1, 1, 300ms), 12);
  const Workers workers(asked.calls, [&](const auto& call) {
    std::this_thread::sleep_for(50ms);
    answer(*asked.calls, call);
  });
  asked.submit();
  asked.collect(12);
  EXPECT_TRUE(asked.are_right());
}

}  // namespace
}  // namespace penstock::bindings
