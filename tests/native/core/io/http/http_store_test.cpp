// What an HttpStore promises beyond what every store does (channel_test.cpp).
#include "core/io/http/http_store.h"

#include "tests/native/core/io/http/http_server.h"
#include "tests/native/core/io/wanted_read.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace penstock::testing {
namespace {

class HttpStoreTest : public ::testing::Test {
 protected:
  HttpStoreTest() { server_.put("/a", content_of(20'000, 1)); }

  HttpStore make(std::vector<HiddenParts> hidden = {}, bool check_etag = true) {
    HttpOptions options;
    options.server = server_.url();
    options.check_etag = check_etag;
    return {std::move(options), plain_addresses(std::move(hidden), false)};
  }
  static std::string small(HttpStore& store, const std::string& path, std::uint64_t offset, std::size_t bytes) {
    std::string text(bytes, '\0');
    store.read_small(path, offset, std::as_writable_bytes(std::span(text)));
    return text;
  }

  HttpServer server_;
  const std::string a_ = server_.url("/a");
};

TEST_F(HttpStoreTest, SaysHowItIsBestRead) {
  HttpStore store = make();
  EXPECT_TRUE(store.is_far());
  EXPECT_EQ(store.name(), "http");
  EXPECT_EQ(store.reads_in_flight(), 64U);
  EXPECT_EQ(store.open_channel(ChannelMode::NonBlocking), nullptr);
  message_of([&] { store.list(server_.url()); }, ErrorKind::InvalidArgument);
}

TEST_F(HttpStoreTest, AnEmptyFileHasNoBytesWhateverAServerSaysOfIt) {
  server_.put("/empty", "");
  const std::vector<Fault> replies{{}, {.status = "416 x", .headers = "Content-Range: none\r\n"}, {.status = "200 OK"}};
  for (const Fault& reply : replies) {
    server_.script("/empty", {reply});
    EXPECT_EQ(make().size(server_.url("/empty"), Links::Follow), 0U);
  }
}

TEST_F(HttpStoreTest, EachRefusalHasItsKindAndWords) {
  const struct {
    Fault fault;
    ErrorKind kind;
    const char* words;
  } kRefusals[] = {
      {{.status = "410 Gone"}, ErrorKind::NotFound, "there is no such file (status 410"},
      {{.status = "404 x", .body = "<Code>NoSuchBucket</Code>"}, ErrorKind::NotFound, "there is no such bucket"},
      {{.status = "401 x"}, ErrorKind::IoError, "without credentials"},
      {{.status = "403 x", .body = "<Code>AccessDenied</Code>"}, ErrorKind::IoError, "AccessDenied"},
      {{.status = "400 Bad"}, ErrorKind::IoError, "status 400"},
      {{.status = "206 x", .headers = "Content-Range: bytes 0-0/*\r\n"}, ErrorKind::IoError, "does not say how many"},
  };
  HttpStore store = make();
  for (const auto& each : kRefusals) {
    server_.script("/a", {each.fault});
    const std::string said = message_of([&] { store.size(a_, Links::Follow); }, each.kind);
    EXPECT_NE(said.find(each.words), std::string::npos) << said;
    EXPECT_TRUE(said.starts_with(a_)) << said;
  }
}

TEST_F(HttpStoreTest, HiddenPartsOpenTheFileAndAreInNoMessage) {
  HttpStore store = make({{server_.url(), "", "token=outer"}, {server_.url("/in"), "name:word", "token=secret"}});
  server_.put("/in/b%20c", content_of(10));
  EXPECT_EQ(store.size(server_.url("/in/b c"), Links::Follow), 10U);
  const std::string head = server_.asked().back();
  EXPECT_TRUE(head.starts_with("GET /in/b%20c?token=secret HTTP/1.1")) << head;
  EXPECT_NE(head.find("Authorization: Basic bmFtZTp3b3Jk"), std::string::npos) << head;
  store.size(a_, Links::Follow);
  EXPECT_TRUE(server_.asked().back().starts_with("GET /a?token=outer HTTP/1.1"));
  server_.script("/in/x", {{.status = "403 x"}});
  const std::string said = message_of([&] { store.size(server_.url("/in/x"), Links::Follow); }, ErrorKind::IoError);
  EXPECT_NE(said.find("with the password or the query of the address"), std::string::npos) << said;
  EXPECT_EQ(said.find("secret"), std::string::npos) << said;
  EXPECT_EQ(said.find("word@"), std::string::npos) << said;
}

TEST_F(HttpStoreTest, EndsThatWereLookedAtTogetherAreNotAskedForAgain) {
  server_.put("/b", content_of(5'000, 2));
  HttpStore store = make();
  store.look_ahead({a_, server_.url("/b")});
  EXPECT_EQ(server_.asked().size(), 4U);
  EXPECT_EQ(store.size(a_, Links::Follow), 20'000U);
  EXPECT_EQ(small(store, a_, 10, 100), content_of(20'000, 1).substr(10, 100));
  EXPECT_EQ(small(store, server_.url("/b"), 4'000, 1'000), content_of(5'000, 2).substr(4'000));
  EXPECT_EQ(server_.asked().size(), 4U);
  EXPECT_EQ(small(store, a_, 9'000, 10), content_of(20'000, 1).substr(9'000, 10));
  EXPECT_EQ(server_.asked().size(), 5U);
  store.drop_ends();
  EXPECT_EQ(store.size(a_, Links::Follow), 20'000U);
  EXPECT_EQ(server_.asked().size(), 6U);
}

TEST_F(HttpStoreTest, AFileThatChangedSinceItsSizeWasAskedForIsRefused) {
  HttpStore store = make();
  HttpStore careless = make({}, false);
  for (HttpStore* each : {&store, &careless}) each->size(a_, Links::Follow);
  EXPECT_EQ(store.etag(a_), "\"1\"");
  server_.put("/a", content_of(20'000, 2), "\"2\"");
  const std::string said = message_of([&] { small(store, a_, 0, 10); }, ErrorKind::Corruption);
  EXPECT_NE(said.find("its ETag was \"1\" and is \"2\""), std::string::npos) << said;
  EXPECT_EQ(small(careless, a_, 0, 10), content_of(10, 2));
}

TEST_F(HttpStoreTest, OnlyAFileThatIsForgottenMayBeAnotherOne) {
  HttpStore store = make();
  std::vector<File> files{{a_, 20'000, &store}, {a_, 20'000, &store}};
  const auto read = [&](const File& file, unsigned seed) {
    WantedRead one(file, 100, 100);
    read_one(*store.open_channel(ChannelMode::MayWait), one);
    return one.right(seed);
  };
  EXPECT_TRUE(read(files[0], 1) && read(files[1], 1));
  server_.put("/a", content_of(20'000, 2), "\"2\"");
  store.forget(std::as_bytes(std::span(files).first(1)));
  EXPECT_TRUE(read(files[0], 2));
  EXPECT_FALSE(read(files[1], 2));
}

TEST_F(HttpStoreTest, AForkedChildIsRefused) {
  HttpStore store = make();
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      store.size(a_, Links::Follow);
      ::_exit(1);
    } catch (const Error& error) {
      ::_exit(error.kind() == ErrorKind::InvalidArgument ? 0 : 2);
    }
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace penstock::testing
