// What an HttpStore promises beyond what every store does (channel_test.cpp).
#include "core/io/http/http_store.h"

#include "tests/native/core/io/http/http_server.h"
#include "tests/native/core/io/in_child.h"
#include "tests/native/core/io/wanted_read.h"
#include "tests/native/message_of.h"

#include <sys/resource.h>

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
  static std::uint64_t size(HttpStore& store, const std::string& path) { return store.size(path, Links::Follow); }
  static std::string small(HttpStore& store, const std::string& path, std::uint64_t offset, std::size_t bytes) {
    std::string text(bytes, '\0');
    store.read_small(path, offset, std::as_writable_bytes(std::span(text)));
    return text;
  }

  HttpServer server_;
  const std::string a_ = server_.url("/a");
};

TEST_F(HttpStoreTest, SaysHowItIsBestReadListsNothingAndTakesSizesFromTheServer) {
  HttpStore store = make();
  EXPECT_TRUE(store.is_far());
  EXPECT_EQ(store.name(), "http");
  EXPECT_EQ(store.reads_in_flight(), 64U);
  message_of([&] { store.list(server_.url()); }, ErrorKind::InvalidArgument);
  server_.put("/empty", "");
  const std::vector<Fault> replies{{}, {.status = "416 x", .headers = "Content-Range: none\r\n"}, {.status = "200 OK"}};
  for (const Fault& reply : replies) {
    server_.script("/empty", {reply});
    EXPECT_EQ(size(store, server_.url("/empty")), 0U);
  }
  server_.script("/a", {{.status = "206 x", .headers = "Content-Range: bytes 0-0/*\r\n"}});
  expect_error([&] { size(store, a_); }, ErrorKind::IoError, a_ + ": the server does not say how many");
}

TEST_F(HttpStoreTest, HiddenPartsOpenTheFileAndAreInNoMessage) {
  HttpStore store = make({{server_.url(), "", "token=outer"}, {server_.url("/in"), "name:word", "token=secret"}});
  server_.put("/in/b%20c", content_of(10));
  EXPECT_EQ(size(store, server_.url("/in/b c")), 10U);
  const std::string head = server_.asked().back();
  EXPECT_TRUE(head.starts_with("GET /in/b%20c?token=secret HTTP/1.1")) << head;
  EXPECT_NE(head.find("Authorization: Basic bmFtZTp3b3Jk"), std::string::npos) << head;
  size(store, a_);
  EXPECT_TRUE(server_.asked().back().starts_with("GET /a?token=outer HTTP/1.1"));
  server_.script("/in/x", {{.status = "403 x"}});
  const std::string said = message_of([&] { size(store, server_.url("/in/x")); }, ErrorKind::IoError);
  EXPECT_NE(said.find("with the password or the query of the address"), std::string::npos) << said;
  EXPECT_EQ(said.find("secret"), std::string::npos) << said;
  EXPECT_EQ(said.find("word@"), std::string::npos) << said;
}

TEST_F(HttpStoreTest, WithoutADescriptorTheFileAndTheRemedyAreNamed) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UndefinedBehaviorSanitizer looks at memory through a pipe";
#endif
  EXPECT_TRUE(in_child([&] {
    HttpStore store = make();
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const auto is_named = [&](const std::string& said) {
      return said.starts_with(a_ + ": ") && said.ends_with("Too many open files (ulimit -n)");
    };
    return is_named(message_of([&] { size(store, a_); }, ErrorKind::IoError)) &&
           is_named(message_of(
               [&] {
                 store.look_ahead({a_, server_.url("/b")});
               },
               ErrorKind::IoError));
  }));
}

TEST_F(HttpStoreTest, EndsThatWereLookedAtTogetherAreNotAskedForAgain) {
  server_.put("/b", content_of(5'000, 2));
  HttpStore store = make();
  store.look_ahead({a_, server_.url("/b")});
  EXPECT_EQ(server_.asked().size(), 4U);
  EXPECT_EQ(size(store, a_), 20'000U);
  EXPECT_EQ(small(store, a_, 10, 100), content_of(20'000, 1).substr(10, 100));
  EXPECT_EQ(small(store, server_.url("/b"), 4'000, 1'000), content_of(5'000, 2).substr(4'000));
  EXPECT_EQ(server_.asked().size(), 4U);
  EXPECT_EQ(small(store, a_, 9'000, 10), content_of(20'000, 1).substr(9'000, 10));
  EXPECT_EQ(server_.asked().size(), 5U);
  store.drop_ends();
  EXPECT_EQ(size(store, a_), 20'000U);
  EXPECT_EQ(server_.asked().size(), 6U);
}

TEST_F(HttpStoreTest, AFileThatChangedIsRefusedUnlessItIsForgottenOrNotChecked) {
  HttpStore store = make();
  HttpStore careless = make({}, false);
  HttpStore reader = make();
  std::vector<File> files{{a_, 20'000, &reader}, {a_, 20'000, &reader}};
  const auto read = [&](const File& file, unsigned seed) {
    WantedRead one(file, 100, 100);
    read_one(*reader.open_channel(ChannelMode::MayWait), one);
    return one.right(seed);
  };
  for (HttpStore* each : {&store, &careless}) size(*each, a_);
  EXPECT_EQ(store.etag(a_), "\"1\"");
  EXPECT_TRUE(read(files[0], 1) && read(files[1], 1));
  server_.put("/a", content_of(20'000, 2), "\"2\"");
  expect_error([&] { small(store, a_, 0, 10); }, ErrorKind::Corruption, "its ETag was \"1\" and is \"2\"");
  EXPECT_EQ(small(careless, a_, 0, 10), content_of(10, 2));
  reader.forget(std::as_bytes(std::span(files).first(1)));
  EXPECT_TRUE(read(files[0], 2));
  EXPECT_FALSE(read(files[1], 2));
}

}  // namespace
}  // namespace penstock::testing
