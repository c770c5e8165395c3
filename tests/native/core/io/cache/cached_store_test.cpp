#include "core/io/cache/cached_store.h"

#include "tests/native/core/io/memory_store.h"
#include "tests/native/core/io/wanted_read.h"
#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"

#include <sys/resource.h>

#include <array>
#include <csignal>
#include <fstream>
#include <optional>
#include <random>

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBytes = 6 * kCacheBlock + 1234;

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // [begin, end)

class CachedStoreTest : public ::testing::Test {
 protected:
  /// A store of a process of its own, around the same file; `most` bytes of it are kept.
  void open(std::optional<std::uint64_t> most = UINT64_MAX, const std::string& version = "1") {
    store_.reset();
    far_ = std::make_shared<MemoryStore>(behaviour_);
    put(*far_);
    store_ = std::make_shared<CachedStore>(far_, std::make_shared<LocalStore>(), folder_.path());
    file_ = {"corpus/stream.bin", kBytes, store_.get()};
    const std::array contents{CachedStore::Content{"corpus", version}};
    const std::array files{CacheableFile{"corpus/stream.bin", kBytes}};
    if (most) store_->keep(contents, files, most);
    behaviour_->bytes = 0;
    behaviour_->runs = 0;
  }
  void put(MemoryStore& store) const {
    const std::string content = content_of(kBytes, seed_);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(content));
    store.put("corpus/stream.bin", {bytes.begin(), bytes.end()});
  }

  /// The ranges, submitted together and read to their ends.
  std::deque<WantedRead> read(const Ranges& ranges, ChannelMode mode = ChannelMode::MayWait,
                              ByteStore* through = nullptr) {
    std::deque<WantedRead> wanted;
    for (const auto& [begin, end] : ranges) wanted.emplace_back(file_, begin, end - begin);
    run(*(through != nullptr ? through : store_.get())->open_channel(mode), wanted);
    return wanted;
  }
  void expect_right(const Ranges& ranges, ByteStore* through = nullptr) {
    for (const WantedRead& one : read(ranges, ChannelMode::MayWait, through)) {
      ASSERT_TRUE(one.right(seed_)) << one.read.offset << " " << one.read.size << " " << one.message();
    }
  }
  /// How many bytes were asked for behind the cache since it was opened.
  std::uint64_t read_all() {
    constexpr std::uint64_t kStep = 3 << 18U;
    for (std::uint64_t at = 0; at < kBytes; at += kStep) expect_right({{at, std::min(at + kStep, kBytes)}});
    return behaviour_->bytes;
  }
  /// The same by a store of another process.
  std::uint64_t read_all_anew() {
    open();
    return read_all();
  }

  [[nodiscard]] std::string kept(const char* suffix) const {
    for (const auto& each : fs::recursive_directory_iterator(folder_.path())) {
      if (each.path().extension() == suffix) return each.path();
    }
    return {};
  }
  void flip(const char* suffix, std::uint64_t offset) const {
    std::fstream file(kept(suffix), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    const int old = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(old ^ 4));
    ASSERT_TRUE(file.good());
  }

  const TemporaryFolder folder_;
  unsigned seed_ = 1;  // of the file's bytes
  std::shared_ptr<Behaviour> behaviour_ = std::make_shared<Behaviour>();
  std::shared_ptr<MemoryStore> far_;
  std::shared_ptr<CachedStore> store_;
  File file_;
};

TEST_F(CachedStoreTest, WhatIsNotKeptIsReadThroughAnotherStoreWhereOneIsGiven) {
  open();
  expect_right({{0, 2 * kCachePage}});
  const std::uint64_t before = behaviour_->bytes;
  const auto behaviour = std::make_shared<Behaviour>();
  const auto other = std::make_shared<MemoryStore>(behaviour);
  put(*other);
  const std::shared_ptr<ByteStore> through = store_->filled_through(other);
  for (int round = 0; round < 2; ++round) {
    expect_right({{0, 5 * kCachePage}}, through.get());
    EXPECT_EQ(behaviour->bytes, 3 * kCachePage);
  }
  expect_right({{0, 5 * kCachePage}});
  EXPECT_EQ(behaviour_->bytes, before);
}

TEST_F(CachedStoreTest, WhatWasReadIsNotAskedForAgainButInAnotherVersion) {
  open();
  EXPECT_EQ(read_all(), kBytes);
  EXPECT_EQ(read_all(), kBytes);
  EXPECT_EQ(read_all_anew(), 0U);
  EXPECT_EQ(store_->counts().wrong, 0U);
  seed_ = 2;
  open(UINT64_MAX, "2");
  EXPECT_EQ(read_all(), kBytes);
}

TEST_F(CachedStoreTest, AnyRangesInAnyOrderAreRight) {
  for (const bool late : {false, true}) {
    for (const std::uint64_t most : {std::uint64_t{0}, kBytes / 3, UINT64_MAX}) {
      fs::remove_all(folder_.path());
      open(most);
      behaviour_->late = late;
      behaviour_->near_bytes = 10'000;
      std::mt19937_64 draw(7);
      for (int round = 0; round < 150; ++round) {
        Ranges ranges;
        std::uint64_t at = draw() % kBytes;
        for (int i = 0; i < 12; ++i) {
          // Neighbours, and jumps; some are small, some are several pages, a few are blocks.
          const std::uint64_t sizes[] = {draw() % 50, draw() % 9000, draw() % 40'000,
                                         round % 20 == 0 ? 2 * kCacheBlock : 1};
          const std::uint64_t end = std::min(kBytes, at + sizes[draw() % 4]);
          ranges.emplace_back(at, end);
          at = draw() % 3 == 0 ? draw() % kBytes : end;
        }
        expect_right(ranges);
      }
      EXPECT_EQ(store_->counts().hits == 0, most == 0);
    }
  }
}

TEST_F(CachedStoreTest, OnlyTheMissingPagesOfARunAreAskedForAndNothingBeyondThem) {
  open();
  expect_right({{5000, 6000}, {6000, 9000}});
  EXPECT_EQ(behaviour_->bytes, 2 * kCachePage);
  EXPECT_EQ(behaviour_->runs, 1U);
  open(0);
  expect_right({{5000, 6000}, {6000, 9000}});
  EXPECT_EQ(behaviour_->bytes, 4000U);
  open();
  expect_right({{40 * kCachePage, 44 * kCachePage}});
  expect_right({{38 * kCachePage, 44 * kCachePage + 1}});
  EXPECT_EQ(behaviour_->bytes, 7 * kCachePage);
  EXPECT_EQ(behaviour_->runs, 3U);  // nothing is near in this store
}

// What lies between wanted ranges goes to one place for all requests of a fetch.
TEST_F(CachedStoreTest, GapsThatShareTheirDestinationAreKeptRight) {
  open();
  behaviour_->near_bytes = 3000;
  std::vector<std::byte> nobody(3000);
  std::deque<WantedRead> reads;
  for (std::uint64_t at = 1000; at < 400'000; at += 3500) {
    reads.emplace_back(file_, at, 500).read.joined = at > 1000;
    Read& gap = reads.emplace_back(file_, at + 500, 3000).read;
    gap.destination = nobody.data();
    gap.joined = true;
  }
  const auto channel = store_->open_channel(ChannelMode::MayWait);
  for (int round = 0; round < 2; ++round) {
    run(*channel, reads);
    for (std::size_t i = 0; i < reads.size(); i += 2) ASSERT_TRUE(reads[i].right(seed_));
  }
  read_all_anew();
  EXPECT_EQ(store_->counts().wrong, 0U);
  EXPECT_GT(store_->counts().hits, 90U);
}

TEST_F(CachedStoreTest, APageThatIsNotItsCheckValuesIsReadAgain) {
  open();
  read_all();
  for (const std::uint64_t page : {std::uint64_t{0}, std::uint64_t{700}, kBytes / kCachePage}) {
    for (const char* suffix : {".data", ".crc"}) {
      flip(suffix, suffix == std::string(".crc") ? page * 4 + 1 : page * kCachePage + 17);
      EXPECT_EQ(read_all_anew(), std::min(kCachePage, kBytes - page * kCachePage));
      EXPECT_EQ(store_->counts().wrong, 1U);
      EXPECT_EQ(read_all_anew(), 0U) << "it was mended";
    }
  }
}

TEST_F(CachedStoreTest, DoubtedPagesAreAskedForAgainAndEachReadThatDoubtsThemMayDoSo) {
  open();
  EXPECT_FALSE(store_->doubt(file_, 0, kCachePage));  // none is kept
  read_all();
  seed_ = 2;
  put(*far_);
  for (int read = 0; read < 2; ++read) EXPECT_TRUE(store_->doubt(file_, kCachePage + 5, 10));
  behaviour_->bytes = 0;
  expect_right({{kCachePage, 2 * kCachePage}});
  EXPECT_EQ(behaviour_->bytes, kCachePage);
  seed_ = 1;
  expect_right({{0, kCachePage}, {2 * kCachePage, kBytes}});
  EXPECT_EQ(behaviour_->bytes, kCachePage);
  EXPECT_FALSE(store_->doubt(file_, kBytes + kCachePage, 1));
}

TEST_F(CachedStoreTest, FilesThatWereCutOrRemovedAreReadAgain) {
  read_all_anew();
  for (const char* suffix : {".data", ".crc"}) {
    fs::resize_file(kept(suffix), 5000);
    EXPECT_GT(read_all_anew(), 0U);
    read_all();
    fs::remove(kept(suffix));
    EXPECT_GT(read_all_anew(), 0U);
  }
  open();
  for (const auto& each : fs::directory_iterator(folder_.path())) fs::remove_all(each);
  read_all();
  EXPECT_EQ(store_->counts().stopped_by, 0);
  EXPECT_EQ(read_all_anew(), 0U);
}

TEST_F(CachedStoreTest, ASmallerBoundRemovesAndALargerOneKeeps) {
  read_all_anew();
  const auto size_of = [&] { return CacheFolder(folder_.path(), "corpus", "1").disk_bytes(); };
  ASSERT_GT(size_of(), kBytes);
  open(kBytes / 2);
  EXPECT_LE(size_of(), kBytes / 2 + 3 * kCachePage);  // the note of the folder, and ends of files of check values
  const std::uint64_t kept_now = kBytes - read_all();
  EXPECT_GT(kept_now, kBytes / 4);
  EXPECT_EQ(store_->counts().wrong, 0U);
  EXPECT_EQ(read_all_anew(), kBytes - kept_now);
}

TEST_F(CachedStoreTest, AReadThatWasCancelledOrFailedIsNotKept) {
  open();
  behaviour_->late = true;
  std::atomic<bool> cancelled{false};
  WantedRead one(file_, 0, 3 * kCachePage);
  one.read.cancelled = &cancelled;
  const auto channel = store_->open_channel(ChannelMode::MayWait);
  Read* pointer = &one.read;
  channel->submit({&pointer, 1});
  EXPECT_EQ(channel->wait({&pointer, 1}, std::chrono::seconds(0)), 0U);
  EXPECT_EQ(behaviour_->runs, 1U);
  cancelled = true;
  EXPECT_EQ(channel->wait({&pointer, 1}, std::chrono::seconds(10)), 1U);
  EXPECT_EQ(store_->counts().filled, 0U);
  behaviour_->late = false;
  behaviour_->bytes = 0;
  behaviour_->fail_offset = 8 * kCachePage;
  behaviour_->failures = 1;
  const auto results = read({{0, kCachePage}, {8 * kCachePage, 9 * kCachePage}});
  EXPECT_TRUE(results[0].right(seed_));
  EXPECT_EQ(results[1].kind(), ErrorKind::IoError);
  EXPECT_EQ(store_->counts().filled, 1U);
  expect_right({{0, 3 * kCachePage}, {8 * kCachePage, 9 * kCachePage}});
  EXPECT_EQ(behaviour_->bytes, 4 * kCachePage);
}

TEST_F(CachedStoreTest, WhatIsKeptIsAtHandForWhoMayNotWait) {
  open();
  const auto outcome = [&](std::uint64_t end) {
    const auto found = read({{100, end}}, ChannelMode::NonBlocking);
    EXPECT_TRUE(found[0].read.outcome == Outcome::NotAtHand || found[0].right(seed_));
    return found[0].read.outcome;
  };
  EXPECT_EQ(outcome(9000), Outcome::NotAtHand);
  expect_right({{100, 9000}});
  EXPECT_EQ(outcome(9000), Outcome::NotAtHand) << "no file is open yet";
  expect_right({{100, 9000}});
  EXPECT_EQ(outcome(9000), Outcome::Done);
  EXPECT_EQ(outcome(90'000), Outcome::NotAtHand);
}

TEST_F(CachedStoreTest, AFullDiskOnlyStopsTheFilling) {
  open();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // as Python has it
  const rlimit small{64 << 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  read_all();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(store_->counts().stopped_by, EFBIG);
  read_all();
  EXPECT_EQ(store_->counts().failed, 1U) << "it is not tried again";
  read_all_anew();
  EXPECT_EQ(read_all_anew(), 0U);
}

TEST_F(CachedStoreTest, AFolderThatCannotBeWrittenIsAnErrorAndNothingIsKeptBeforeItIsSaidWhat) {
  open(std::nullopt);
  read_all();
  EXPECT_TRUE(fs::is_empty(folder_.path()));
  EXPECT_EQ(store_->counts().filled, 0U);
  std::ofstream(folder_ / "file") << "x";
  for (const char* name : {"file", "file/below"}) {
    expect_error([&] { CachedStore(far_, std::make_shared<LocalStore>(), folder_ / name); }, ErrorKind::IoError,
                 "give cache=");
  }
}

}  // namespace
}  // namespace penstock::testing
