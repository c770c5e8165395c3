// What an HttpChannel promises beyond what every channel does (channel_test.cpp).
#include "core/io/http/http_channel.h"

#include "core/io/http/http_store.h"
#include "core/io/http/signed_addresses.h"
#include "tests/native/core/io/http/http_server.h"
#include "tests/native/core/io/wanted_read.h"
#include "tests/native/message_of.h"

namespace penstock::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class HttpChannelTest : public ::testing::Test {
 protected:
  HttpChannelTest() { server_.put("/a", content_of(100'000, 1)); }

  std::shared_ptr<HttpShared> make(std::size_t connections = 64,
                                   std::shared_ptr<Addresses> addresses = plain_addresses({}, false),
                                   milliseconds deadline = seconds(60)) {
    HttpOptions options;
    options.server = server_.url();
    options.connections = connections;
    options.deadline = deadline;
    return std::make_shared<HttpShared>(std::move(options), std::move(addresses));
  }
  /// `count` reads that are no neighbours.
  std::deque<WantedRead> apart(std::size_t count) {
    std::deque<WantedRead> wanted;
    for (std::size_t i = 0; i < count; ++i) wanted.emplace_back(file_, i * 1'000, 100);
    return wanted;
  }
  /// Waits for so many more to end.
  static void finish(HttpChannel& channel, std::size_t count) {
    Read* done[16];
    for (int i = 0; i < 200 && count > 0; ++i) count -= channel.wait(done, milliseconds(100));
    EXPECT_EQ(count, 0U);
  }
  /// Waits until so many requests have come; what ended meanwhile.
  std::vector<Read*> wait_for_requests(HttpChannel& channel, std::size_t count) {
    std::vector<Read*> ended;
    Read* done[16];
    const auto patience = std::chrono::steady_clock::now() + seconds(10);
    while (server_.asked().size() < count && std::chrono::steady_clock::now() < patience) {
      const std::size_t some = channel.wait(done, milliseconds(5));
      ended.insert(ended.end(), done, done + some);
    }
    EXPECT_EQ(server_.asked().size(), count);
    return ended;
  }

  HttpServer server_;
  const File file_{server_.url("/a"), 100'000};
};

TEST_F(HttpChannelTest, ManyAreUnderWayAtOnceAndEndAsTheirAnswersCome) {
  const auto shared = make(8);
  HttpChannel channel(shared);
  std::deque<WantedRead> wanted = apart(9);
  server_.script("/a", std::vector<Fault>(7, {.is_held = true}));
  channel.submit(pointers_to(wanted));
  // Seven are held: the eighth and the ninth, which waits for a connection, go through one.
  const std::vector<Read*> first = wait_for_requests(channel, 9);
  EXPECT_EQ(shared->flights.under_way(), first.size() == 2 ? 7U : 8U);
  server_.release();
  finish(channel, 9 - first.size());
  for (const WantedRead& one : wanted) EXPECT_TRUE(one.right(1)) << one.message();
  EXPECT_EQ(shared->flights.under_way(), 0U);
}

TEST_F(HttpChannelTest, AWaitEndsAtItsTimeOrWhenItIsWoken) {
  HttpChannel channel(make());
  std::deque<WantedRead> wanted = apart(1);
  server_.script("/a", {{.is_held = true}});
  channel.submit(pointers_to(wanted));
  wait_for_requests(channel, 1);
  Read* done[1];
  int waits = 0;
  for (auto start = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - start < milliseconds(50);) {
    EXPECT_EQ(channel.wait(done, milliseconds(10)), 0U);
    ++waits;
  }
  EXPECT_LE(waits, 10);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 8; ++i) {
    std::thread other([&] { channel.wake(); });
    EXPECT_EQ(channel.wait(done, seconds(10)), 0U);
    other.join();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(5));
  server_.release();
  finish(channel, 1);
  EXPECT_TRUE(wanted[0].right(1));
}

TEST_F(HttpChannelTest, AReadCountsTheAttemptsThatFailedBeforeIt) {
  HttpChannel channel(make());
  server_.script("/a", {{.status = "503 x"}, {.cut = 50}});
  std::deque<WantedRead> wanted = apart(1);
  run(channel, wanted);
  EXPECT_TRUE(wanted[0].right(1)) << wanted[0].message();
  EXPECT_EQ(wanted[0].read.retries, 2U);
}

TEST_F(HttpChannelTest, AWaitWhoseTimeIsOverLooksAndGoesOn) {
  HttpChannel channel(make());
  server_.script("/a", {{.status = "503 x"}, {.status = "503 x"}});  // while it is paused, no socket has an event
  std::deque<WantedRead> wanted = apart(1);
  channel.submit(pointers_to(wanted));
  Read* done[1];
  const auto patience = std::chrono::steady_clock::now() + seconds(10);
  std::size_t ended = 0;
  while (ended == 0 && std::chrono::steady_clock::now() < patience) ended = channel.wait(done, milliseconds(-5));
  EXPECT_TRUE(wanted[0].right(1)) << wanted[0].message();
}

TEST_F(HttpChannelTest, NeighboursAreOneRequestWhoseErrorIsTheirsAndShowsNoSecret) {
  HttpChannel channel(
      make(64, plain_addresses({{server_.url(), "name:word", "token=secret"}}, false), milliseconds(80)));
  std::deque<WantedRead> wanted;
  for (const std::uint64_t offset : {0, 1'000, 10'000}) wanted.emplace_back(file_, offset, 1'000);
  server_.script("/a", std::vector<Fault>(50, {.status = "503 x"}));
  run(channel, wanted);
  for (const WantedRead& one : wanted) {
    const std::string said = one.message();
    const std::string range = one.read.offset < 10'000 ? ", bytes 0 to 2,000: " : ", bytes 10,000 to 11,000: ";
    EXPECT_EQ(one.kind(), ErrorKind::IoError);
    EXPECT_TRUE(said.starts_with(file_.path() + range + "no answer that will do in 0.08 s")) << said;
    EXPECT_EQ(said.find("secret"), std::string::npos) << said;
    EXPECT_EQ(said.find("word"), std::string::npos) << said;
  }
}

TEST_F(HttpChannelTest, AStalledServerKeepsNoReadThatNobodyWants) {
  const auto shared = make();
  std::atomic<bool> cancelled{false};
  const std::atomic<bool> never_wanted{true};
  std::deque<WantedRead> wanted = apart(3);
  wanted[0].read.cancelled = &cancelled;
  wanted[2].read.cancelled = &never_wanted;
  {
    HttpChannel channel(shared);
    server_.script("/a", {{.is_held = true}, {.is_held = true}});
    channel.submit(pointers_to(wanted));
    EXPECT_EQ(wait_for_requests(channel, 2), std::vector<Read*>{&wanted[2].read}) << "it is not asked for";
    cancelled = true;
    Read* done[2];
    EXPECT_EQ(channel.wait(done, milliseconds(1)) + channel.wait(done, milliseconds(1)), 1U);
    EXPECT_EQ(done[0], &wanted[0].read);
    EXPECT_EQ(wanted[0].read.outcome, Outcome::Done);
    EXPECT_EQ(shared->flights.under_way(), 1U);
  }
  EXPECT_EQ(shared->flights.under_way(), 0U) << "of a channel that is gone";
}

TEST_F(HttpChannelTest, AChannelThatOthersStarveBeginsOneAllTheSame) {
  const auto shared = make(1);
  HttpChannel first(shared);
  HttpChannel second(shared);
  server_.script("/a", {{.is_held = true}});
  std::deque<WantedRead> wanted = apart(2);
  Read* reads[] = {&wanted[0].read, &wanted[1].read};
  first.submit(std::span(reads).first(1));
  wait_for_requests(first, 1);
  second.submit(std::span(reads).last(1));
  Read* done[1];
  EXPECT_EQ(second.wait(done, milliseconds(1)), 0U);
  EXPECT_EQ(server_.asked().size(), 1U) << "the server has as many as it may";
  finish(second, 1);
  EXPECT_TRUE(wanted[1].right(1));
}

TEST_F(HttpChannelTest, ReadsWaitForTheirAddressAndGetItsErrorOrThatNobodySigned) {
  const auto addresses = SignedAddresses::make("with the keys of the test");
  const auto shared = make(64, addresses, milliseconds(300));
  HttpChannel channel(shared);
  std::deque<WantedRead> wanted = apart(1);
  std::thread signer([&] {
    const std::vector<std::string> asked = addresses->take(10, seconds(10));
    addresses->give({{asked.at(0), asked.at(0) + "?signature=1"}}, seconds(60));
  });
  run(channel, wanted);
  signer.join();
  EXPECT_TRUE(wanted[0].right(1)) << wanted[0].message();
  EXPECT_TRUE(server_.asked()[0].starts_with("GET /a?signature=1 HTTP/1.1"));
  for (const bool is_refused : {true, false}) {
    const File other(server_.url(is_refused ? "/refused" : "/unsigned"), 10);
    std::deque<WantedRead> one;
    one.emplace_back(other, 0, 10);
    std::thread refuser([&] {
      const std::vector<std::string> asked = addresses->take(10, seconds(10));
      if (is_refused) addresses->refuse(asked, Error(ErrorKind::IoError, "no keys"));
    });
    run(channel, one);
    refuser.join();
    const std::string words = is_refused ? "no keys" : "with the keys of the test, which gave no signature in 0.3 s";
    EXPECT_NE(one[0].message().find(words), std::string::npos) << one[0].message();
  }
  EXPECT_EQ(shared->flights.under_way(), 0U);
}

TEST_F(HttpChannelTest, RepliesToOwnRequestsComeInTheirOrderAndTheFirstErrorIsThrown) {
  HttpChannel channel(make(2));
  std::vector<std::string> bytes(6, std::string(10, '\0'));
  const auto requests = [&](const std::string& last) {
    std::vector<Request> made(bytes.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i].path = server_.url(i + 1 < made.size() ? "/a" : last);
      made[i].into = std::as_writable_bytes(std::span(bytes[i]));
      made[i].begin = i * 1'000;
      made[i].end = i * 1'000 + 10;
    }
    return made;
  };
  const std::vector<Reply> replies = channel.ask(requests("/a"));
  ASSERT_EQ(replies.size(), bytes.size());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    EXPECT_EQ(replies[i].range->begin, i * 1'000);
    EXPECT_EQ(bytes[i], content_of(100'000, 1).substr(i * 1'000, 10));
  }
  message_of([&] { channel.ask(requests("/none")); }, ErrorKind::NotFound);
}

}  // namespace
}  // namespace penstock::testing
