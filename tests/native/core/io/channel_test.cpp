// What every store and each of its channels promise, wherever the bytes lie.
#include "core/io/cache/cached_store.h"
#include "core/io/http/http_store.h"
#include "core/io/local/local_store.h"
#include "core/io/local/ring.h"
#include "tests/native/core/io/http/http_server.h"
#include "tests/native/core/io/wanted_read.h"
#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace penstock::testing {
namespace {

/// Files and a store that reads them.
class Place {
 public:
  virtual ~Place() = default;
  /// Before the first read.
  virtual File put(const std::string& name, const std::string& content) = 0;
  virtual ByteStore& store() = 0;
  virtual std::optional<std::string> refused() { return std::nullopt; }
};

class LocalPlace final : public Place {
 public:
  explicit LocalPlace(Reader reader) : reader_(reader), store_(local_.reading_by(refused() ? Reader::Pread : reader)) {}
  File put(const std::string& name, const std::string& content) override {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return {folder_ / name, content.size(), &store()};
  }
  ByteStore& store() override { return *store_; }
  std::optional<std::string> refused() override {
    if (reader_ == Reader::Pread || reader_ == Reader::Mmap) return std::nullopt;
    if (const auto why = Ring::refusal()) return "io_uring is refused here: " + *why;
    if (reader_ != Reader::Direct) return std::nullopt;
    const int fd = ::open(folder_.path().c_str(), O_TMPFILE | O_RDWR | O_DIRECT, 0600);
    if (fd < 0) return "this file system has no direct reads";
    ::close(fd);
    return std::nullopt;
  }

 private:
  const TemporaryFolder folder_;
  const Reader reader_;
  const LocalStore local_;
  const std::shared_ptr<ByteStore> store_;
};

class HttpPlace : public Place {
 public:
  HttpPlace() {
    HttpOptions options;
    options.server = server_.url();
    http_ = std::make_shared<HttpStore>(std::move(options), plain_addresses({}, false));
  }
  File put(const std::string& name, const std::string& content) override {
    server_.put("/" + name, content, '"' + name + '"');
    return {server_.url("/" + name), content.size(), &store()};
  }
  ByteStore& store() override { return *http_; }

 protected:
  HttpServer server_;
  std::shared_ptr<HttpStore> http_;
};

/// The server's files in a cache: read twice, half of the reads are of its pages.
class CachedPlace final : public HttpPlace {
 public:
  File put(const std::string& name, const std::string& content) override {
    files_.push_back({server_.url("/" + name), content.size()});
    return HttpPlace::put(name, content);
  }
  ByteStore& store() override { return *cached_; }
  std::unique_ptr<Channel> open() {
    const std::array contents{CachedStore::Content{server_.url(), "1"}};
    cached_->keep(contents, files_, UINT64_MAX);
    return cached_->open_channel(ChannelMode::MayWait);
  }

 private:
  const TemporaryFolder folder_;
  std::vector<CacheableFile> files_;
  const std::shared_ptr<CachedStore> cached_ =
      std::make_shared<CachedStore>(http_, std::make_shared<LocalStore>(), folder_.path());
};

std::unique_ptr<Place> make_place(const std::string& name) {
  if (name == "Http") return std::make_unique<HttpPlace>();
  if (name == "Cached") return std::make_unique<CachedPlace>();
  return std::make_unique<LocalPlace>(name == "Pread"    ? Reader::Pread
                                      : name == "Uring"  ? Reader::Uring
                                      : name == "Direct" ? Reader::Direct
                                                         : Reader::Mmap);
}

class EveryStore : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto why = place_->refused()) GTEST_SKIP() << *why;
  }
  File put(const std::string& name, std::uint64_t bytes, unsigned seed = 0) {
    return place_->put(name, content_of(bytes, seed));
  }
  /// After all files were put.
  std::unique_ptr<Channel> open() {
    if (auto* const cached = dynamic_cast<CachedPlace*>(place_.get())) return cached->open();
    return store().open_channel(ChannelMode::MayWait);
  }
  ByteStore& store() { return place_->store(); }

  const std::unique_ptr<Place> place_ = make_place(GetParam());
};

INSTANTIATE_TEST_SUITE_P(, EveryStore, ::testing::Values("Pread", "Uring", "Direct", "Mmap", "Http", "Cached"),
                         [](const auto& info) { return info.param; });

TEST_P(EveryStore, ReadsGiveTheBytesAskedForInAnyMixtureAndEndOnce) {
  const File a = put("a", 300'000, 1);
  const File b = put("b", 5'000, 2);
  const auto channel = open();
  for (int round = 0; round < 2; ++round) {
    std::deque<WantedRead> wanted;
    for (int i = 0; i < 200; ++i) wanted.emplace_back(a, i * 1'000, 1'000);  // neighbours
    wanted.emplace_back(b, 4'000, 1'000);
    wanted.emplace_back(a, 299'999, 1);
    wanted.emplace_back(a, 7, 4'096);
    if (!store().is_far()) wanted.emplace_back(a, 300'000, 0);
    wanted.emplace_back(b, 0, 5'000);
    run(*channel, wanted);
    for (const WantedRead& one : wanted) EXPECT_TRUE(one.right(one.read.file == &a ? 1 : 2)) << one.message();
  }
}

TEST_P(EveryStore, AFileOfAnotherSizeIsRefusedWithBothSizes) {
  std::deque<File> files{put("shorter", 4'095), put("longer", 4'097)};
  for (File& each : files) each.bytes = 4'096;
  const auto channel = open();
  std::deque<WantedRead> wanted;
  for (const File& each : files) wanted.emplace_back(each, 0, 10);
  run(*channel, wanted);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string said = wanted[i].message();
    EXPECT_EQ(wanted[i].kind(), ErrorKind::Corruption);
    EXPECT_TRUE(said.starts_with(files[i].path())) << said;
    EXPECT_NE(said.find(i == 0 ? "4,095 bytes" : "4,097 bytes"), std::string::npos) << said;
    EXPECT_NE(said.find("4,096"), std::string::npos) << said;
  }
}

TEST_P(EveryStore, AReadThatFailsIsAnErrorOfItsOwn) {
  const File file = put("a", 1'000);
  const File missing(file.path() + "-missing", 10, &store());
  const auto channel = open();
  std::deque<WantedRead> wanted;
  wanted.emplace_back(file, 990, 11);
  wanted.emplace_back(file, UINT64_MAX - 4, 5);  // its end overflows
  wanted.emplace_back(missing, 0, 10);
  wanted.emplace_back(file, 0, 1'000);
  run(*channel, wanted);
  EXPECT_EQ(wanted[0].kind(), ErrorKind::Corruption);
  EXPECT_EQ(wanted[1].kind(), ErrorKind::Corruption);
  EXPECT_EQ(wanted[2].kind(), ErrorKind::NotFound);
  EXPECT_TRUE(wanted[2].message().starts_with(missing.path())) << wanted[2].message();
  EXPECT_TRUE(wanted[3].right(0)) << wanted[3].message();
}

TEST_P(EveryStore, ReadsThatNobodyWantsEndAndFailNobody) {
  const File file = put("a", 10'000);
  const File missing(file.path() + "-missing", 10, &store());
  const std::atomic<bool> cancelled{true};
  const auto channel = open();
  std::deque<WantedRead> wanted;
  for (const File* each : {&missing, &file, &file}) wanted.emplace_back(*each, wanted.size() * 5, 5);
  wanted[0].read.cancelled = wanted[1].read.cancelled = &cancelled;
  run(*channel, wanted);
  for (const WantedRead& one : wanted) EXPECT_EQ(one.read.outcome, Outcome::Done) << one.message();
  EXPECT_TRUE(wanted[2].right(0));
}

TEST_P(EveryStore, AnotherFileAtTheSameAddressIsNotTakenForTheFirst) {
  const File a = put("a", 64, 1);
  const File b = put("b", 64, 2);
  File file = a;
  const auto channel = open();
  std::deque<WantedRead> wanted;
  wanted.emplace_back(file, 0, 64);
  run(*channel, wanted);
  EXPECT_TRUE(wanted[0].right(1));
  file = b;
  run(*channel, wanted);  // by what the channel knows
  EXPECT_TRUE(wanted[0].right(2));
  file = a;
  run(*store().open_channel(ChannelMode::MayWait), wanted);  // by what the store knows
  EXPECT_TRUE(wanted[0].right(1));
}

TEST_P(EveryStore, WaitWithNothingUnderWayReturnsAtOnce) {
  const auto channel = open();
  Read* done[1];
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(channel->wait(done, std::chrono::seconds(30)), 0U);
  channel->wake();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_P(EveryStore, ANonBlockingChannelOpensNothingAndLeavesErrorsToTheOtherOne) {
  const File file = put("a", 10);
  const File missing(file.path() + "-missing", 10, &store());
  const auto waiting = open();
  const auto channel = store().open_channel(ChannelMode::NonBlocking);
  if (channel == nullptr) return;
  std::deque<WantedRead> wanted;
  for (const File* each : {&file, &missing}) wanted.emplace_back(*each, 0, 10);
  run(*channel, wanted);
  for (const WantedRead& one : wanted) EXPECT_EQ(one.read.outcome, Outcome::NotAtHand) << one.message();
}

TEST_P(EveryStore, ChannelsOfManyThreadsReadTheSameFiles) {
  std::deque<File> files;
  for (unsigned i = 0; i < 10; ++i) files.push_back(put(std::to_string(i), 20'000, i));
  const auto first = open();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto channel = store().open_channel(ChannelMode::MayWait);
      for (unsigned i = 0; i < 40; ++i) {
        WantedRead one(files[i * (t + 1) % 10], i * 400, 3'000);
        read_one(*channel, one);
        if (!one.right(i * (t + 1) % 10)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(EveryStore, SizesAndSmallReadsAreOfTheFileOrSayWhatIsWrong) {
  const File file = put("a", 10'000, 3);
  const std::string missing = file.path() + "-missing";
  std::string small(100, '\0');
  const auto read = [&](const std::string& path, std::uint64_t offset) {
    store().read_small(path, offset, std::as_writable_bytes(std::span(small)));
  };
  EXPECT_EQ(store().size(file.path(), Links::Follow), 10'000U);
  read(file.path(), 9'900);
  EXPECT_EQ(small, content_of(10'000, 3).substr(9'900));
  EXPECT_NE(message_of([&] { read(file.path(), 9'901); }, ErrorKind::Corruption).find(file.path()), std::string::npos);
  EXPECT_NE(message_of([&] { read(missing, 0); }, ErrorKind::NotFound).find(missing), std::string::npos);
  EXPECT_NE(message_of([&] { store().size(missing, Links::Follow); }, ErrorKind::NotFound).find(missing),
            std::string::npos);
}

TEST_P(EveryStore, AWholeFileComesByOneRequestOrNotAtAll) {
  const File file = put("a", 10'000, 3);
  std::string text = "before";
  if (!store().read_whole(file.path(), 10'000, text)) {
    EXPECT_EQ(text, "before");
    return;
  }
  EXPECT_EQ(text, content_of(10'000, 3));
  message_of([&] { store().read_whole(file.path(), 9'999, text); }, ErrorKind::IoError);
  message_of([&] { store().read_whole(file.path() + "-missing", 10, text); }, ErrorKind::NotFound);
}

}  // namespace
}  // namespace penstock::testing
