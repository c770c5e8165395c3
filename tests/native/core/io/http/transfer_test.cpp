// One transfer and its attempts, of which each is run to its end. Times are told to it: nothing is waited for.
#include "core/io/http/transfer.h"

#include "core/io/http/http_store.h"
#include "core/io/http/multi.h"
#include "tests/native/core/io/http/http_server.h"
#include "tests/native/core/io/wanted_read.h"
#include "tests/native/message_of.h"

namespace penstock::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Next = Transfer::Next;

/// Addresses that renew() makes anew, and of() only once `is_known`.
class OwnAddresses final : public Addresses {
 public:
  explicit OwnAddresses(std::string prefix) : prefix_(std::move(prefix)) {}
  std::optional<std::string> of(const std::string& path, const std::function<void()>& /*later*/) override {
    if (!is_known) return std::nullopt;
    return prefix_ + path + "?signature=" + std::to_string(renewed);
  }
  bool renew(const std::string& /*path*/) override { return ++renewed > 0; }
  [[nodiscard]] bool are_secret() const override { return true; }
  [[nodiscard]] std::string credentials() const override { return "with the keys of the test"; }
  std::vector<std::string> list(const std::string& /*path*/) override { return {}; }

  bool is_known = true;
  int renewed = 0;

 private:
  const std::string prefix_;
};

class TransferTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 10'000;

  TransferTest() {
    server_.put("/a", content_of(kBytes, 1));
    make(plain_addresses({}, false));
  }

  void make(std::shared_ptr<Addresses> addresses, std::vector<std::string> headers = {}) {
    transfer_.reset();
    HttpOptions options;
    options.server = server_.url();
    options.headers = std::move(headers);
    shared_ = std::make_shared<HttpShared>(std::move(options), std::move(addresses));
    transfer_ = std::make_unique<Transfer>(curl(), *shared_);
    multi_.prepare(transfer_->handle());
    // libcurl itself asks again where a connection that it kept was closed.
    EXPECT_EQ(curl().easy_setopt(transfer_->handle(), CURLOPT_FRESH_CONNECT, 1L), CURLE_OK);
  }
  /// Takes a request for bytes 100 to 1,100 of the file.
  void take(const std::string& path = "/a") {
    file_ = {server_.url(path), kBytes};
    wanted_.emplace(file_, 100, 1'000);
    Read* const read = &wanted_->read;
    transfer_->take({&read, 1});
  }
  Next attempt(seconds later = {}) {
    const auto now = begin_ + later;
    EXPECT_TRUE(transfer_->find_address({}, now));
    transfer_->begin_attempt(now);
    multi_.add(transfer_->handle());
    const CURLMsg* ended = nullptr;
    while ((ended = multi_.next_ended()) == nullptr) multi_.run(milliseconds(100));
    const CURLcode code = ended->data.result;
    multi_.remove(transfer_->handle());
    return transfer_->end_attempt(code, now);
  }
  /// Of the first bytes of a file.
  static Request request_of(const std::string& path, std::string& into) {
    Request request;
    request.path = path;
    request.into = std::as_writable_bytes(std::span(into));
    request.end = into.size();
    return request;
  }
  std::string failure(ErrorKind kind) {
    if (!transfer_->error()) return "no error";
    return message_of([&] { std::rethrow_exception(transfer_->error()); }, kind);
  }
  void expect_failure(ErrorKind kind, const std::string& words) { expect_words(failure(kind), words); }
  static void expect_words(const std::string& said, const std::string& words) {
    EXPECT_NE(said.find(words), std::string::npos) << said;
  }
  /// The next attempts, all at the begin.
  void expect_next(std::initializer_list<Next> ends) {
    for (const Next end : ends) EXPECT_EQ(attempt(), end);
  }

  HttpServer server_;
  Multi multi_{curl(), 4};
  std::shared_ptr<HttpShared> shared_;
  std::unique_ptr<Transfer> transfer_;
  const Transfer::Clock::time_point begin_ = Transfer::Clock::now();
  File file_;
  std::optional<WantedRead> wanted_;
};

// What may pass: the next attempt gives all bytes. The deadline gives up, with what was wrong the last time.
TEST_F(TransferTest, FaultsThatMayPassAreTriedAgainUntilTheDeadline) {
  const std::string right = "Content-Range: bytes 100-1099/10000\r\n";
  const struct {
    Fault fault;
    const char* words;
  } kFaults[] = {
      {{.status = "503 x", .body = "<Code>SlowDown</Code>"}, "status 503, SlowDown"},
      {{.hangs_up = true}, "after 1 s"},
      {{.cut = 999}, "after 1 s"},
      {{.headers = right + "Connection: close\r\n", .cut = 500}, "500 of 1,000 bytes came"},
      {{.headers = right + "Connection: close\r\n", .body = "x"}, "more than 1,000 bytes came"},
      {{.headers = "Content-Range: none\r\n"}, "without the range"},
      {{.status = "200 OK", .body = "all of it"}, "the whole file instead of a range"},
  };
  for (const auto& [fault, words] : kFaults) {
    server_.script("/a", {fault, {}, fault});
    take();
    EXPECT_EQ(attempt(), Next::Again) << words;
    EXPECT_FALSE(transfer_->error());
    EXPECT_EQ(attempt(seconds(1)), Next::Done) << words;
    EXPECT_EQ(transfer_->attempts(), 2U);
    EXPECT_TRUE(wanted_->right(1)) << words;
    take();
    EXPECT_EQ(attempt(seconds(60)), Next::Again) << "a deadline of its own";
    server_.script("/a", {fault});
    EXPECT_EQ(attempt(seconds(120)), Next::Failed);
    const std::string said = failure(ErrorKind::IoError);
    EXPECT_TRUE(said.starts_with(server_.url("/a") + ", bytes 100 to 1,100: no answer that will do in 60 s and 2 "
                                                     "attempts; the last: "))
        << said;
    if (words != std::string("after 1 s")) expect_words(said, words);
  }
}

TEST_F(TransferTest, WhatWillNotPassIsFinalAtOnce) {
  const std::string other_region = "x-amz-bucket-region: eu-north-1\r\n";
  const struct {
    Fault fault;
    ErrorKind kind;
    const char* words;
  } kFaults[] = {
      {{.status = "404 x"}, ErrorKind::NotFound, "there is no such file (status 404)"},
      {{.status = "404 x", .body = "<Code>NoSuchBucket</Code>"}, ErrorKind::NotFound, "there is no such bucket"},
      {{.status = "403 x", .body = "<Code>AccessDenied</Code>"}, ErrorKind::IoError, "AccessDenied"},
      {{.status = "401 x"}, ErrorKind::IoError, "it was asked for without credentials"},
      {{.status = "400 x", .headers = other_region}, ErrorKind::IoError, "region=\"eu-north-1\""},
      {{.status = "416 x", .headers = "Content-Range: bytes */50\r\n"}, ErrorKind::Corruption, "has 50 bytes there"},
      {{.headers = "Content-Range: bytes 100-1099/9999\r\n"}, ErrorKind::Corruption, "9,999 bytes there, and 10,000"},
      {{.headers = "ETag: \"2\"\r\n"}, ErrorKind::Corruption, "its ETag was \"1\" and is \"2\""},
      {{.status = "302 x"}, ErrorKind::IoError, "status 302, a redirect"},
      {{.status = "302 x", .headers = "Location: ftp://x/y?key=word\r\n"},
       ErrorKind::IoError,
       "no address of HTTP: ftp://x/y"},
  };
  take();
  EXPECT_EQ(attempt(), Next::Done);  // the first ETag is kept
  for (const auto& [fault, kind, words] : kFaults) {
    server_.script("/a", {fault});
    const std::size_t before = server_.asked().size();
    Read* const read = &wanted_->read;
    transfer_->take({&read, 1});
    EXPECT_EQ(attempt(), Next::Failed) << words;
    const std::string said = failure(kind);
    expect_words(said, words);
    EXPECT_TRUE(said.starts_with(server_.url("/a"))) << said;
    EXPECT_EQ(said.find("key=word"), std::string::npos) << said;
    EXPECT_EQ(server_.asked().size(), before + 1);
  }
}

TEST_F(TransferTest, APauseIsDrawnAndIsAtLeastWhatTheServerAsksForWhichIsAskedHalfAsMuch) {
  const std::size_t before = shared_->flights.limit();
  server_.script("/a", {{.status = "500 x"}});
  take();
  EXPECT_EQ(attempt(), Next::Again);
  EXPECT_LT(transfer_->due() - begin_, milliseconds(100));
  EXPECT_EQ(shared_->flights.limit(), before);
  for (const char* status : {"429 x", "503 x"}) {
    server_.script("/a", {{.status = status, .headers = "Retry-After: 7\r\n"}});
    take();
    EXPECT_EQ(attempt(), Next::Again);
    EXPECT_GE(transfer_->due() - begin_, seconds(7));
  }
  EXPECT_EQ(shared_->flights.limit(), before / 4);
  server_.script("/a", {{.status = "503 x", .headers = "Retry-After: 70\r\n"}});
  EXPECT_EQ(attempt(), Next::Failed) << "beyond the deadline";
}

TEST_F(TransferTest, AServerThatNeverGivesARangeOrIsNotThereIsToldAfterThreeAttempts) {
  const std::vector<Fault> whole(3, {.status = "200 OK", .body = "all of it"});
  server_.script("/a", whole);
  take();
  expect_next({Next::Again, Next::Again, Next::Failed});
  expect_failure(ErrorKind::IoError, "this server knows no ranges");
  take();
  expect_next({Next::Done});
  server_.script("/a", whole);
  take();
  expect_next({Next::Again, Next::Again, Next::Again});  // it has given one
  make(std::make_shared<OwnAddresses>("http://127.0.0.1:1"));
  std::string byte(1, '\0');
  const Request request = request_of("/a", byte);
  for (const bool has_answered : {false, true}) {
    shared_->has_answered = has_answered;
    transfer_->take(request);
    // One that was there may come back.
    expect_next({Next::Again, Next::Again, has_answered ? Next::Again : Next::Failed});
    if (!has_answered) expect_failure(ErrorKind::IoError, "/a, bytes 0 to 1: no connection in 3 attempts: ");
  }
}

TEST_F(TransferTest, RedirectsAreFollowedFiveTimes) {
  const auto to = [](const std::string& where) {
    return Fault{.status = "302 x", .headers = "Location: " + where + "\r\n"};
  };
  server_.put("/b", content_of(kBytes, 2));
  server_.script("/a", {to("/b")});
  take();
  expect_next({Next::AtOnce, Next::Done});
  EXPECT_TRUE(wanted_->right(2));
  server_.script("/a", {6, to("/a")});
  take();
  expect_next({Next::AtOnce, Next::AtOnce, Next::AtOnce, Next::AtOnce, Next::AtOnce, Next::Failed});
  expect_failure(ErrorKind::IoError, "more than 5 redirects");
}

TEST_F(TransferTest, NoSecretGoesToAnotherServer) {
  HttpServer other;
  other.put("/a", content_of(kBytes, 2));
  const Fault away{.status = "307 x", .headers = "Location: " + other.url("/a") + "\r\n"};
  for (const char* header : {"", "X-Key: word"}) {
    make(plain_addresses({}, false), *header != '\0' ? std::vector<std::string>{header} : std::vector<std::string>());
    server_.script("/a", {away});
    take();
    EXPECT_EQ(attempt(), *header != '\0' ? Next::Failed : Next::AtOnce);
  }
  expect_failure(ErrorKind::IoError, "it is redirected to another server, " + other.url("/a"));
  make(plain_addresses({{server_.url("/a"), "name:word", ""}}, false));
  server_.script("/a", {away});
  take();
  EXPECT_EQ(attempt(), Next::Failed);
  EXPECT_EQ(failure(ErrorKind::IoError).find("word@"), std::string::npos);
  server_.script("/a", {{.status = "302 x", .headers = "Location: " + server_.url("/b") + "\r\n"}});
  take();
  expect_next({Next::AtOnce, Next::Failed});  // there is none
  expect_words(server_.asked().back(), "Authorization: Basic bmFtZTp3b3Jk");
  EXPECT_TRUE(other.asked().empty());
}

TEST_F(TransferTest, ARefusedSignatureIsMadeAnewOnce) {
  const auto addresses = std::make_shared<OwnAddresses>(server_.url());
  make(addresses);
  std::string bytes(10, '\0');
  const Request request = request_of("/a", bytes);
  for (const char* status : {"403 x", "401 x", "400 x"}) {
    server_.script("/a", {{.status = status}, {.status = status}});
    transfer_->take(request);
    expect_next({Next::AtOnce, Next::Failed});
  }
  expect_words(server_.asked().back(), "GET /a?signature=3 HTTP/1.1");
  transfer_->take(request);
  EXPECT_EQ(attempt(), Next::Done);
  EXPECT_EQ(bytes, content_of(10, 1));
  addresses->is_known = false;
  transfer_->take(request);
  EXPECT_FALSE(transfer_->find_address({}, begin_));
  const std::string said = message_of([&] { transfer_->find_address({}, begin_ + seconds(61)); }, ErrorKind::IoError);
  expect_words(said, "it was to be asked for with the keys of the test, which gave no signature in 60 s");
}

TEST_F(TransferTest, BytesGoToTheirReadsAndShortOrWholeFilesWhereTheyAreWanted) {
  file_ = {server_.url("/a"), kBytes};
  std::deque<WantedRead> wanted;
  for (const auto& [offset, size] : {std::pair{100, 1}, {101, 700}, {801, 299}}) {
    wanted.emplace_back(file_, offset, size);
  }
  transfer_->take(pointers_to(wanted));
  EXPECT_EQ(attempt(), Next::Done);
  for (const WantedRead& each : wanted) EXPECT_TRUE(each.right(1));
  EXPECT_EQ(server_.asked().size(), 1U);

  std::string bytes(kBytes + 5, '\0');
  Request request = request_of(file_.path(), bytes);
  transfer_->take(request);
  EXPECT_EQ(attempt(), Next::Failed) << "the file ends before";
  failure(ErrorKind::Corruption);
  request.may_be_short = true;
  transfer_->take(request);
  EXPECT_EQ(attempt(), Next::Done);
  EXPECT_EQ(transfer_->reply().range->total, kBytes);
  EXPECT_EQ(bytes.substr(0, kBytes), content_of(kBytes, 1));

  Request whole;
  whole.path = file_.path();
  whole.whole = &bytes;
  whole.most = kBytes;
  server_.script("/a", {{.cut = 7}, {.status = "206 x"}});
  transfer_->take(whole);
  expect_next({Next::Again, Next::Again, Next::Done});  // only 200 is the whole file
  EXPECT_EQ(bytes, content_of(kBytes, 1));
  EXPECT_EQ(server_.asked().back().find("Range"), std::string::npos);
  whole.most = kBytes - 1;
  transfer_->take(whole);
  EXPECT_EQ(attempt(), Next::Failed);
  expect_failure(ErrorKind::IoError, "10,000 bytes, and one of at most 9,999 was expected");
}

TEST_F(TransferTest, HeadersThatAreGivenReplaceThoseThatAreSentOtherwise) {
  const auto headers_of = [&](std::vector<std::string> given) {
    make(plain_addresses({}, false), std::move(given));
    take();
    EXPECT_EQ(attempt(), Next::Done);
    const std::string head = server_.asked().back();
    return head.substr(head.find("Host: " + server_.url().substr(7)) + server_.url().size() - 1);
  };
  const std::string identity = "\r\nAccept-Encoding: identity";
  const std::string range = "\r\nRange: bytes=100-1099\r\n";
  EXPECT_EQ(headers_of({"X-Own: 1"}), "\r\nX-Own: 1" + identity + "\r\nUser-Agent: penstock" + range);
  EXPECT_EQ(headers_of({"user-agent: mine", "ACCEPT: text/plain"}),
            "\r\nuser-agent: mine\r\nACCEPT: text/plain" + identity + range);
}

TEST_F(TransferTest, NextToNothingForFiveSecondsIsAStall) {
  take();
  ASSERT_TRUE(transfer_->find_address({}, begin_));
  transfer_->begin_attempt(begin_);
  EXPECT_FALSE(transfer_->is_stalled(begin_ + seconds(4)));
  EXPECT_TRUE(transfer_->is_stalled(begin_ + seconds(5)));
  EXPECT_EQ(transfer_->end_attempt(CURLE_OPERATION_TIMEDOUT, begin_ + seconds(5)), Next::Again);
  transfer_->begin_attempt(begin_ + seconds(57));
  EXPECT_FALSE(transfer_->is_stalled(begin_ + seconds(59)));
  EXPECT_TRUE(transfer_->is_stalled(begin_ + seconds(60))) << "the deadline";
  EXPECT_EQ(transfer_->end_attempt(CURLE_OPERATION_TIMEDOUT, begin_ + seconds(60)), Next::Failed);
  expect_failure(ErrorKind::IoError, "0 bytes had come when it stalled");
}

}  // namespace
}  // namespace penstock::testing
