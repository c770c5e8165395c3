// Requests without memory: the n-th `new` of a channel fails, alone or with some that follow, for n = 1, 2, … until
// none fails. wait() throws nothing, each read ends once, right or with an error, and the channel reads on.
//
// libcurl's own allocations do not fail: without memory for its cache of connections, 7.88 divides by 0.
#include "core/io/http/http_channel.h"
#include "core/io/http/http_store.h"
#include "tests/native/core/io/http/http_server.h"
#include "tests/native/core/io/in_child.h"
#include "tests/native/core/io/wanted_read.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace penstock::testing {
namespace {

std::uint64_t until_failure = 0;  // 0: none fails
bool all_following = false;
std::uint64_t failed = 0;

// One thread: the process that is without memory has no other.
bool fails() noexcept {
  if (until_failure == 0) return false;
  if (until_failure > 1) {
    --until_failure;
    return false;
  }
  if (!all_following) until_failure = 0;
  ++failed;
  return true;
}

using std::chrono::milliseconds;

constexpr int kWaits = 3;      // without memory
constexpr int kPatience = 80;  // waits

class HttpWithoutMemoryTest : public ::testing::TestWithParam<bool> {
 protected:
  HttpWithoutMemoryTest() { server_.put("/a", content_of(20'000, 1)); }

  std::shared_ptr<HttpShared> make() {
    HttpOptions options;
    options.server = server_.url();
    options.connections = 3;
    return std::make_shared<HttpShared>(std::move(options), plain_addresses({}, false));
  }
  std::deque<WantedRead> wanted() {
    std::deque<WantedRead> found;
    for (std::size_t i = 0; i < 5; ++i) found.emplace_back(file_, i * 3'000, 100);
    return found;
  }

  /// True if the trial was right.
  bool run_trial(std::uint64_t n) {
    HttpChannel channel(make());
    std::deque<WantedRead> reads = wanted();
    const std::vector<Read*> pointers = pointers_to(reads);
    std::vector<Read*> done(reads.size());
    std::size_t ended = 0;
    failed = 0;
    all_following = GetParam();
    until_failure = n;
    try {
      channel.submit(pointers);
    } catch (const std::bad_alloc&) {  // it took none
      until_failure = 0;
      channel.submit(pointers);
    }
    for (int i = 0; i < kWaits && ended < reads.size(); ++i) ended += channel.wait(done, milliseconds(1));
    until_failure = 0;
    for (int i = 0; i < kPatience && ended < reads.size(); ++i) ended += channel.wait(done, milliseconds(100));
    if (ended != reads.size()) return false;
    const auto is_told = [](const WantedRead& each) { return each.right(1) || each.read.error != nullptr; };
    if (!std::all_of(reads.begin(), reads.end(), is_told)) return false;
    std::deque<WantedRead> more = wanted();
    run(channel, more);
    return std::all_of(more.begin(), more.end(), [](const WantedRead& each) { return each.right(1); });
  }

  HttpServer server_;
  const File file_{server_.url("/a"), 20'000};
};

// In a child: the server's threads, which are not in it, have memory.
TEST_P(HttpWithoutMemoryTest, EachReadEndsAndTheChannelReadsOn) {
  EXPECT_TRUE(in_child([&] {
    if (!run_trial(UINT64_MAX)) return false;  // loads libcurl
    std::uint64_t n = 1;
    for (; n < 10'000; ++n) {
      bool is_right = false;
      try {
        is_right = run_trial(n);
      } catch (const std::exception&) {
        until_failure = 0;
      }
      if (!is_right) {
        std::fprintf(stderr, "wrong at n = %llu\n", static_cast<unsigned long long>(n));
        return false;
      }
      if (failed == 0) break;
    }
    return n > 20;
  }));
}

INSTANTIATE_TEST_SUITE_P(Alone, HttpWithoutMemoryTest, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Following, HttpWithoutMemoryTest, ::testing::Values(true));

}  // namespace
}  // namespace penstock::testing

[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = penstock::testing::fails() ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
