// What the engine asks of threads of Python's: answers, pauses, deadlines, and leaving with calls under way. The
// threads here are the test's own and know no Python.
#include "bindings/python_calls.h"

#include "bindings/python_channel.h"
#include "core/base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::bindings {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Calls = std::shared_ptr<PythonCalls>;

std::byte byte_at(std::uint64_t offset) {
  return static_cast<std::byte>(offset * 7 + offset / 251);
}

std::vector<std::byte> bytes_at(std::uint64_t offset, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (std::uint64_t i = 0; i < size; ++i) bytes[i] = byte_at(offset + i);
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

// A door that threads wait at until it is opened.
class Door {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
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

// Waits for so many reads that end; fails after ten seconds.
std::vector<Read*> collect(Channel& channel, std::size_t count) {
  std::vector<Read*> ended;
  std::array<Read*, 16> some{};
  const Clock::time_point until = Clock::now() + 10s;
  while (ended.size() < count && Clock::now() < until) {
    const std::size_t got = channel.wait(some, 100ms);
    ended.insert(ended.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(got));
  }
  EXPECT_EQ(ended.size(), count);
  return ended;
}

std::string message_of(const Read& read) {
  if (!read.error) return "no error";
  try {
    std::rethrow_exception(read.error);
  } catch (const Error& error) {
    return error.what();
  }
}

ErrorKind kind_of(const Read& read) {
  try {
    std::rethrow_exception(read.error);
  } catch (const Error& error) {
    return error.kind();
  }
}

CallOptions options(std::size_t connections, std::size_t ranges_a_call, std::chrono::nanoseconds deadline = 60s) {
  return {connections, ranges_a_call, deadline};
}

TEST(PythonCalls, EachReadGetsItsBytesWithNoMoreThanTheConnectionsUnderWay) {
  const Calls calls = PythonCalls::make(options(4, 1));
  std::atomic<int> under_way{0};
  std::atomic<int> most{0};
  Workers workers(calls, [&](const auto& call) {
    const int now = ++under_way;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(1ms);
    --under_way;
    answer(*calls, call);
  });
  Ranges ranges(200);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  collect(channel, 200);
  EXPECT_TRUE(ranges.are_right());
  EXPECT_EQ(most, 4);
  EXPECT_LE(workers.count(), 5U);
}

TEST(PythonCalls, RangesOfOneFileShareACallAndThoseOfAnotherDoNot) {
  const Calls calls = PythonCalls::make(options(64, 3));
  Ranges ranges(8);
  for (const std::size_t i : {1, 4}) ranges.reads[i].file = &ranges.files[1];
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  std::vector<std::pair<std::string, std::size_t>> seen;
  for (int i = 0; i < 3; ++i) {
    const auto call = calls->take();
    seen.emplace_back(call->path, call->requests.size());
    answer(*calls, *call);
  }
  const std::vector<std::pair<std::string, std::size_t>> expected{{"bucket/a", 3}, {"bucket/b", 2}, {"bucket/a", 3}};
  EXPECT_EQ(seen, expected);
  collect(channel, 8);
  EXPECT_TRUE(ranges.are_right());
}

TEST(PythonCalls, NeighboursAreOneRange) {
  const Calls calls = PythonCalls::make(options(64, 1));
  Ranges ranges(5, 100, 100);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  const auto call = calls->take();
  ASSERT_EQ(call->requests.size(), 1U);
  EXPECT_EQ(call->requests[0]->size, 500U);
  answer(*calls, *call);
  collect(channel, 5);
  EXPECT_TRUE(ranges.are_right());
}

TEST(PythonCalls, WhatFailedIsAskedForAloneAfterAPauseThatHasABound) {
  const Calls calls = PythonCalls::make(options(64, 4));
  Ranges ranges(4);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  auto call = calls->take();
  ASSERT_EQ(call->requests.size(), 4U);
  const Clock::time_point failed = Clock::now();
  calls->again(call->requests, "it fails", false);
  for (int i = 0; i < 4; ++i) {
    call = calls->take();
    EXPECT_EQ(call->requests.size(), 1U);
    EXPECT_GE(Clock::now(), call->requests[0]->due);
    answer(*calls, *call);
  }
  EXPECT_LT(Clock::now() - failed, 100ms + 2s);  // this machine may be slow
  collect(channel, 4);
  EXPECT_TRUE(ranges.are_right());
  for (const Read& read : ranges.reads) EXPECT_EQ(read.retries, 1U);
}

TEST(PythonCalls, WhatFailedGetsNoCompanyOfWhatIsNew) {
  const Calls calls = PythonCalls::make(options(64, 4));
  Ranges ranges(4);
  PythonChannel channel(calls);
  channel.submit({ranges.pointers.data(), 1});
  calls->again(calls->take()->requests, "it fails", false);
  std::this_thread::sleep_for(100ms);  // it is due
  channel.submit({ranges.pointers.data() + 1, 3});
  for (const std::size_t count : {1, 3}) {
    const auto call = calls->take();
    EXPECT_EQ(call->requests.size(), count);
    answer(*calls, *call);
  }
  collect(channel, 4);
  EXPECT_TRUE(ranges.are_right());
}

TEST(PythonCalls, AnAnswerOfAnotherLengthIsAskedForAgain) {
  const Calls calls = PythonCalls::make(options(64, 1));
  std::atomic<int> count{0};
  const Workers workers(calls, [&](const auto& call) {
    if (count++ > 0) return answer(*calls, call);
    const std::vector<std::byte> cut = bytes_at(0, 99);
    const std::span<const std::byte> span(cut);
    calls->give(call.requests, {&span, 1});
  });
  Ranges ranges(1);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  collect(channel, 1);
  EXPECT_TRUE(ranges.are_right());
  EXPECT_EQ(ranges.reads[0].retries, 1U);
}

TEST(PythonCalls, AtTheDeadlineTheLastCauseIsTold) {
  const Calls calls = PythonCalls::make(options(64, 1, 300ms));
  const Workers workers(calls, [&](const auto& call) { calls->again(call.requests, "the disk is on fire", false); });
  Ranges ranges(1);
  PythonChannel channel(calls);
  const Clock::time_point began = Clock::now();
  channel.submit(ranges.pointers);
  collect(channel, 1);
  EXPECT_LT(Clock::now() - began, 5s);
  const std::string message = message_of(ranges.reads[0]);
  EXPECT_TRUE(message.starts_with("bucket/a, bytes 0 to 100: no answer that will do in 0.3 s and ")) << message;
  EXPECT_TRUE(message.ends_with(" attempts; the last: the disk is on fire")) << message;
  EXPECT_EQ(kind_of(ranges.reads[0]), ErrorKind::IoError);
}

TEST(PythonCalls, ACallThatNeverReturnsIsLeftAtTheDeadlineAndItsAnswerGoesNowhere) {
  const Calls calls = PythonCalls::make(options(64, 1, 200ms));
  Door door;
  auto ranges = std::make_unique<Ranges>(1);
  Workers workers(calls, [&](const auto& call) {
    door.wait();
    answer(*calls, call);
  });
  PythonChannel channel(calls);
  channel.submit(ranges->pointers);
  collect(channel, 1);
  EXPECT_TRUE(message_of(ranges->reads[0]).ends_with("the last had not returned")) << message_of(ranges->reads[0]);
  ranges.reset();  // sanitizers tell if somebody writes there now
  door.open();
}

TEST(PythonCalls, AServerThatNeverAnsweredIsGivenUpAfterThreeAttempts) {
  const Calls calls = PythonCalls::make(options(64, 1, 3600s));
  const Workers workers(calls, [&](const auto& call) { calls->again(call.requests, "refused", true); });
  Ranges ranges(1);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  collect(channel, 1);
  EXPECT_EQ(message_of(ranges.reads[0]), "bucket/a, bytes 0 to 100: no connection in 3 attempts: refused");
}

TEST(PythonCalls, AServerThatHasAnsweredIsAskedUntilTheDeadline) {
  const Calls calls = PythonCalls::make(options(64, 1, 3600s));
  std::atomic<int> count{0};
  const Workers workers(calls, [&](const auto& call) {
    const int number = count++;
    if (number > 0 && number < 5) return calls->again(call.requests, "refused", true);
    answer(*calls, call);
  });
  Ranges ranges(2);
  PythonChannel channel(calls);
  channel.submit({ranges.pointers.data(), 1});
  collect(channel, 1);
  channel.submit({ranges.pointers.data() + 1, 1});
  collect(channel, 1);
  EXPECT_TRUE(ranges.are_right());
  EXPECT_EQ(ranges.reads[1].retries, 4U);
}

TEST(PythonCalls, WhatIsRefusedEndsAtOnceByItsKind) {
  const Calls calls = PythonCalls::make(options(64, 1, 3600s));
  Ranges ranges(3);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  calls->refuse(calls->take()->requests, ErrorKind::NotFound, "there is no such file");
  calls->refuse(calls->take()->requests, ErrorKind::IoError, "access is refused");
  calls->compare_size(calls->take()->requests, 4096);
  collect(channel, 3);
  EXPECT_EQ(kind_of(ranges.reads[0]), ErrorKind::NotFound);
  EXPECT_EQ(message_of(ranges.reads[1]), "bucket/a, bytes 1,000 to 1,100: access is refused");
  EXPECT_EQ(kind_of(ranges.reads[2]), ErrorKind::Corruption);
  EXPECT_TRUE(message_of(ranges.reads[2]).ends_with("the file has 4,096 bytes, and 1,048,576 are expected"));
}

TEST(PythonCalls, ReadsThatNobodyWantsEndWhetherQueuedOrUnderWay) {
  const Calls calls = PythonCalls::make(options(1, 1, 3600s));
  Ranges ranges(2);
  std::atomic<bool> cancelled{false};
  for (Read& read : ranges.reads) read.cancelled = &cancelled;
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  const auto call = calls->take();  // the second waits for the connection
  cancelled = true;
  collect(channel, 2);
  for (const Read& read : ranges.reads) EXPECT_EQ(read.outcome, Outcome::Done);
  answer(*calls, *call);
  EXPECT_EQ(ranges.into[0], std::vector<std::byte>(100));
}

TEST(PythonCalls, WakingEndsAWait) {
  const Calls calls = PythonCalls::make(options(1, 1, 3600s));
  Ranges ranges(1);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  std::thread waker([&] {
    std::this_thread::sleep_for(20ms);
    channel.wake();
  });
  std::array<Read*, 1> done{};
  EXPECT_EQ(channel.wait(done, 100s), 0U);
  waker.join();
  EXPECT_EQ(channel.wait(done, 1ms), 0U);
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

TEST(PythonCalls, StoppingFailsWhatIsQueuedAndEndsThreads) {
  const Calls calls = PythonCalls::make(options(1, 1, 3600s));
  Ranges ranges(2);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  const auto call = calls->take();
  calls->stop();
  EXPECT_FALSE(calls->take());
  collect(channel, 1);
  EXPECT_TRUE(message_of(ranges.reads[1]).ends_with("its store is read no more: Python ends"));
  answer(*calls, *call);  // the one that was under way still counts
  collect(channel, 1);
  EXPECT_EQ(ranges.into[0], bytes_at(0, 100));
  Ranges more(1);
  EXPECT_THROW(channel.submit(more.pointers), Error);
}

TEST(PythonCalls, WhatFailsAfterStoppingIsNotAskedForAgain) {
  const Calls calls = PythonCalls::make(options(1, 1, 3600s));
  Ranges ranges(1);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  const auto call = calls->take();
  calls->stop();
  calls->again(call->requests, "it fails", false);
  collect(channel, 1);
  EXPECT_TRUE(message_of(ranges.reads[0]).ends_with("its store is read no more: Python ends"));
}

TEST(PythonCalls, ThreadsAreWantedWhileNoneIsIdleAndNotBeyondTheConnections) {
  const Calls calls = PythonCalls::make(options(2, 1, 3600s));
  Ranges ranges(3);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  const auto first = calls->take();
  EXPECT_TRUE(first->wants_thread);
  calls->has_no_thread();  // it could not be started: the next one that takes a call wants it again
  answer(*calls, *first);
  const auto second = calls->take();
  EXPECT_TRUE(second->wants_thread);
  const auto third = calls->take();
  EXPECT_TRUE(third->wants_thread);  // the one that waits while both connections are in use
  answer(*calls, *second);
  answer(*calls, *third);
  collect(channel, 3);
  EXPECT_TRUE(ranges.are_right());
}

TEST(PythonCalls, WhatNoThreadIsFreeForFailsAtTheDeadline) {
  const Calls calls = PythonCalls::make(options(1, 1, 200ms));
  Ranges ranges(3);
  PythonChannel channel(calls);
  const auto begin_one = [&](std::size_t i) { channel.submit({&ranges.pointers[i], 1}); };
  begin_one(0);
  const auto first = calls->take();  // both threads that one connection has; neither returns
  collect(channel, 1);
  begin_one(1);
  const auto second = calls->take();
  collect(channel, 1);
  begin_one(2);
  const Clock::time_point begin = Clock::now();
  collect(channel, 1);
  EXPECT_GE(Clock::now() - begin, 190ms);
  EXPECT_TRUE(message_of(ranges.reads[2])
                  .ends_with("no thread was free to ask for it in 0.2 s: 2 calls of its store have not returned"))
      << message_of(ranges.reads[2]);
}

TEST(PythonCalls, WhatWaitsLongBehindCallsThatReturnDoesNotFail) {
  const Calls calls = PythonCalls::make(options(1, 1, 300ms));
  const Workers workers(calls, [&calls](const auto& call) {
    std::this_thread::sleep_for(50ms);
    answer(*calls, call);
  });
  Ranges ranges(12);
  PythonChannel channel(calls);
  channel.submit(ranges.pointers);
  collect(channel, 12);
  EXPECT_TRUE(ranges.are_right());
}

// --- requests that are not reads

struct Asking {
  explicit Asking(Calls asked) : calls(std::move(asked)) {}
  ~Asking() { calls->leave(asker); }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

  std::shared_ptr<StoreRequest> ask(Wanted wanted, std::uint64_t most = 0) {
    auto request = std::make_shared<StoreRequest>();
    request->wanted = wanted;
    request->path = "bucket/a";
    request->most = most;
    calls->push(asker, {request});
    return request;
  }
  void collect() {
    StoreRequests ended;
    calls->collect(asker, ended, 10s);
    EXPECT_EQ(ended.size(), 1U);
  }

  Calls calls;
  Asker asker;
};

TEST(PythonCalls, SizesNamesAndWholeFilesAreAnswered) {
  const Calls calls = PythonCalls::make(options(4, 4));
  Asking asking(calls);
  const auto size = asking.ask(Wanted::Size);
  calls->give_size(calls->take()->requests, 12);
  asking.collect();
  EXPECT_EQ(size->bytes, 12U);
  const auto names = asking.ask(Wanted::Names);
  calls->give_names(calls->take()->requests, {"a", "b/"});
  asking.collect();
  EXPECT_EQ(names->names, (std::vector<std::string>{"a", "b/"}));
  const std::string text = "{\"version\": 1}";
  const auto bytes = std::as_bytes(std::span(text));
  const auto whole = asking.ask(Wanted::Whole, text.size());
  calls->give(calls->take()->requests, {&bytes, 1});
  asking.collect();
  EXPECT_EQ(whole->text, text);
  const auto longer = asking.ask(Wanted::Whole, text.size() - 1);
  calls->give(calls->take()->requests, {&bytes, 1});
  asking.collect();
  EXPECT_TRUE(longer->error);
}

}  // namespace
}  // namespace penstock::bindings
