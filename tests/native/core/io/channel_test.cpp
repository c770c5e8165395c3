// What every store and each of its channels promise, wherever the bytes lie.
#include "core/io/cache/cached_store.h"
#include "core/io/http/http_store.h"
#include "tests/native/core/io/http/http_server.h"
#include "tests/native/core/io/in_child.h"
#include "tests/native/core/io/local/ways_to_read.h"
#include "tests/native/core/io/wanted_read.h"
#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"

#include <array>
#include <fstream>
#include <random>
#include <thread>

namespace penstock::testing {
namespace {

class EveryStore : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    if (name != "Http" && name != "Cached") {
      reader_ = name == "Pread"    ? Reader::Pread
                : name == "Uring"  ? Reader::Uring
                : name == "Direct" ? Reader::Direct
                                   : Reader::Mmap;
      if (const auto why = refusal_of(*reader_, folder_.path())) GTEST_SKIP() << *why;
      store_ = LocalStore().reading_by(*reader_);
      return;
    }
    HttpOptions options;
    options.server = server_.url();
    store_ = std::make_shared<HttpStore>(std::move(options), plain_addresses({}, false));
    if (name == "Http") return;
    cached_ = std::make_shared<CachedStore>(store_, std::make_shared<LocalStore>(), folder_.path());
    store_ = cached_;
  }
  /// Before the first read.
  File put(const std::string& name, std::uint64_t bytes, unsigned seed = 0) {
    const std::string content = content_of(bytes, seed);
    const std::string path = reader_ ? folder_ / name : server_.url("/" + name);
    if (reader_) {
      std::ofstream(path, std::ios::binary) << content;
    } else {
      server_.put("/" + name, content, '"' + name + '"');
      files_.push_back({path, bytes});
    }
    return {path, bytes, store_.get()};
  }
  /// After all files were put. Of the cache: read twice, half of the reads are of its pages.
  std::unique_ptr<Channel> open() {
    if (cached_) cached_->keep(std::array{CachedStore::Content{server_.url(), "1"}}, files_, UINT64_MAX);
    return store().open_channel(ChannelMode::MayWait);
  }
  ByteStore& store() { return *store_; }

 private:
  const TemporaryFolder folder_;
  HttpServer server_;
  std::optional<Reader> reader_;
  std::shared_ptr<ByteStore> store_;
  std::shared_ptr<CachedStore> cached_;
  std::vector<CacheableFile> files_;
};

INSTANTIATE_TEST_SUITE_P(, EveryStore, ::testing::Values("Pread", "Uring", "Direct", "Mmap", "Http", "Cached"),
                         [](const auto& info) { return info.param; });

TEST_P(EveryStore, ReadsGiveTheBytesAskedForInAnyMixtureAndEndOnce) {
  const File a = put("a", 300'000, 1);
  const File b = put("b", 5'000, 2);
  const auto channel = open();
  Read* nothing[1];
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(channel->wait(nothing, std::chrono::seconds(30)), 0U) << "nothing is under way";
  channel->wake();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
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

TEST_P(EveryStore, AReadThatFailsIsAnErrorOfItsOwnAndThoseThatNobodyWantsAreNotMade) {
  const File file = put("a", 1'000);
  const File missing(file.path() + "-missing", 10, &store());
  const std::atomic<bool> cancelled{true};
  const auto channel = open();
  std::deque<WantedRead> wanted;
  wanted.emplace_back(file, 990, 11);
  wanted.emplace_back(file, UINT64_MAX - 4, 5);  // its end overflows
  wanted.emplace_back(missing, 0, 10);
  wanted.emplace_back(file, 0, 1'000);
  for (const File* each : {&missing, &file}) wanted.emplace_back(*each, 5, 5).read.cancelled = &cancelled;
  run(*channel, wanted);
  EXPECT_EQ(wanted[0].kind(), ErrorKind::Corruption);
  EXPECT_EQ(wanted[1].kind(), ErrorKind::Corruption);
  EXPECT_EQ(wanted[2].kind(), ErrorKind::NotFound);
  EXPECT_TRUE(wanted[2].message().starts_with(missing.path())) << wanted[2].message();
  EXPECT_TRUE(wanted[3].right(0)) << wanted[3].message();
  for (const std::size_t i : {4, 5}) {
    EXPECT_EQ(wanted[i].read.outcome, Outcome::Done) << wanted[i].message();
    EXPECT_EQ(wanted[i].buffer, std::vector<std::byte>(5));
  }
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

TEST_P(EveryStore, ANonBlockingChannelOpensNothingAndLeavesErrorsToTheOtherOne) {
  const File file = put("a", 10);
  const File missing(file.path() + "-missing", 10, &store());
  const auto waiting = open();
  const auto channel = store().open_channel(ChannelMode::NonBlocking);
  const std::string reader = GetParam();
  ASSERT_EQ(channel == nullptr, reader == "Direct" || reader == "Http");
  if (channel == nullptr) return;
  std::deque<WantedRead> wanted;
  for (const File* each : {&file, &missing}) wanted.emplace_back(*each, 0, 10);
  run(*channel, wanted);
  for (const WantedRead& one : wanted) EXPECT_EQ(one.read.outcome, Outcome::NotAtHand) << one.message();
}

// A read that ends while it is begun (libcurl reads after it has sent) is handed out by the wait that follows.
TEST_P(EveryStore, ChannelsOfManyThreadsReadTheSameFilesAndHandOutAtOnceAThousandUnderALimitOf32Descriptors) {
  const bool is_far = store().is_far();
  const std::uint64_t bytes = is_far ? 20'000 : 64;
  std::deque<File> files;
  for (unsigned i = 0; i < (is_far ? 10 : 1'000); ++i) files.push_back(put(std::to_string(i), bytes, i));
  const auto first = open();
  std::optional<FileLimit> limit;
  if (!is_far) limit.emplace(32);
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      const auto channel = store().open_channel(ChannelMode::MayWait);
      for (int i = 0; i < (is_far ? 80 : 3'000); ++i) {
        const auto k = static_cast<unsigned>(random() % files.size());
        WantedRead one(files[k], random() % (bytes / 2), bytes / 2);
        read_one(*channel, one);
        if (!one.right(k)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(!is_far || std::chrono::steady_clock::now() - start < std::chrono::seconds(15));
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
  expect_error([&] { read(file.path(), 9'901); }, ErrorKind::Corruption, file.path());
  expect_error([&] { read(missing, 0); }, ErrorKind::NotFound, missing);
  expect_error([&] { store().size(missing, Links::Follow); }, ErrorKind::NotFound, missing);
}

// A fork of local files: EveryReader.AForkedChildReadsWhileTheParentsThreadsHammerTheStore.
TEST_P(EveryStore, AForkedChildOfAFarStoreIsRefused) {
  const File file = put("a", 10);
  const auto channel = open();
  if (!store().is_far()) GTEST_SKIP() << "it reads";
  EXPECT_TRUE(in_child([&] {
    expect_error([&] { store().size(file.path(), Links::Follow); }, ErrorKind::InvalidArgument, "spawn");
    expect_error([&] { store().open_channel(ChannelMode::MayWait); }, ErrorKind::InvalidArgument, "spawn");
    return !HasFailure();
  }));
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
