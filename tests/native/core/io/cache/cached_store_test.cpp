#include "core/io/cache/cached_store.h"

#include "../memory_store.h"
#include "core/base/error.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::ByteStore;
using penstock::CachedStore;
using penstock::Channel;
using penstock::ChannelMode;
using penstock::File;
using penstock::kCacheBlock;
using penstock::kCachePage;
using penstock::LocalStore;
using penstock::Outcome;
using penstock::Read;
using penstock::testing::Behaviour;
using penstock::testing::MemoryStore;

constexpr std::uint64_t kBytes = 6 * kCacheBlock + 1234;

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 draw(seed);
  std::vector<std::byte> bytes(count);
  for (auto& each : bytes) each = static_cast<std::byte>(draw());
  return bytes;
}

// Reads that are cancelled while they are under way: they end as done, and nothing was read.
class CancellingStore final : public MemoryStore {
 public:
  std::unique_ptr<Channel> open_channel(ChannelMode /*mode*/) override { return std::make_unique<Cancelling>(); }
  std::atomic<bool> flag{false};

 private:
  class Cancelling final : public Channel {
   public:
    void submit(std::span<Read* const> reads) override { reads_.assign(reads.begin(), reads.end()); }
    std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds /*timeout*/) override {
      std::size_t count = 0;
      for (; !reads_.empty() && count < done.size(); reads_.pop_back()) {
        const_cast<std::atomic<bool>*>(reads_.back()->cancelled)->store(true);
        done[count++] = reads_.back();
      }
      return count;
    }
    void wake() override {}

   private:
    std::vector<Read*> reads_;
  };
};

class CachedStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "penstock-cache-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    bytes_ = random_bytes(kBytes, 1);
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(root_);
  }

  // A store of a process of its own, around the same file.
  CachedStore& open(std::optional<std::uint64_t> most = UINT64_MAX, const std::string& version = "1") {
    store_.reset();
    far_ = std::make_shared<MemoryStore>(behaviour_);
    far_->put("corpus/stream.bin", bytes_);
    store_ = std::make_shared<CachedStore>(far_, std::make_shared<LocalStore>(), root_);
    file_.emplace("corpus/stream.bin", kBytes, store_.get());
    const std::array contents{CachedStore::Content{"corpus", version}};
    const std::array files{penstock::CacheableFile{"corpus/stream.bin", kBytes}};
    store_->keep(contents, files, most);
    behaviour_->bytes = 0;
    behaviour_->runs = 0;
    return *store_;
  }

  struct Result {
    std::vector<std::byte> bytes;
    Outcome outcome = Outcome::Done;
    bool failed = false;
  };

  // Ranges [begin, end), submitted together.
  std::vector<Result> read(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges,
                           ChannelMode mode = ChannelMode::MayWait, ByteStore* through = nullptr) {
    const auto channel = (through != nullptr ? through : store_.get())->open_channel(mode);
    std::vector<Result> results(ranges.size());
    std::deque<Read> reads;
    std::vector<Read*> pointers;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      results[i].bytes.resize(ranges[i].second - ranges[i].first);
      Read& read = reads.emplace_back();
      read.file = &*file_;
      read.offset = ranges[i].first;
      read.size = results[i].bytes.size();
      read.destination = results[i].bytes.data();
      read.owner = &results[i];
      pointers.push_back(&read);
    }
    channel->submit(pointers);
    std::array<Read*, 7> done;
    for (std::size_t left = reads.size(); left > 0;) {
      const std::size_t count = channel->wait(done, 10s);
      EXPECT_GT(count, 0U);
      if (count == 0) return results;
      for (std::size_t i = 0; i < count; ++i) {
        auto& result = *static_cast<Result*>(done[i]->owner);
        result.outcome = done[i]->outcome;
        result.failed = done[i]->error != nullptr;
      }
      left -= count;
    }
    return results;
  }

  void expect_right(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges, ByteStore* through = nullptr) {
    const auto results = read(ranges, ChannelMode::MayWait, through);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      ASSERT_EQ(results[i].outcome, Outcome::Done);
      ASSERT_TRUE(std::equal(results[i].bytes.begin(), results[i].bytes.end(),
                             bytes_.begin() + static_cast<std::ptrdiff_t>(ranges[i].first)))
          << ranges[i].first << " to " << ranges[i].second;
    }
  }

  void read_all() {
    for (std::uint64_t at = 0; at < kBytes; at += 3 << 18U)
      expect_right({{at, std::min<std::uint64_t>(at + (3 << 18U), kBytes)}});
  }

  std::string kept(const char* suffix) const {
    for (const auto& each : std::filesystem::recursive_directory_iterator(root_)) {
      if (each.path().extension() == suffix) return each.path();
    }
    return {};
  }

  void flip(const char* suffix, std::uint64_t offset) {
    std::fstream file(kept(suffix), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(offset));
    const int old = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(old ^ 4));
    ASSERT_TRUE(file.good());
  }

  std::string root_;
  std::vector<std::byte> bytes_;
  std::shared_ptr<Behaviour> behaviour_ = std::make_shared<Behaviour>();
  std::shared_ptr<MemoryStore> far_;
  std::shared_ptr<CachedStore> store_;
  std::optional<File> file_;
};

TEST_F(CachedStoreTest, WhatIsNotKeptIsReadThroughAnotherStoreWhereOneIsGiven) {
  CachedStore& cache = open();
  expect_right({{0, 2 * kCachePage}});
  const std::uint64_t before = behaviour_->bytes;
  const auto behaviour = std::make_shared<Behaviour>();
  const auto other = std::make_shared<MemoryStore>(behaviour);
  other->put("corpus/stream.bin", bytes_);
  const std::shared_ptr<ByteStore> through = cache.filled_through(other);
  for (int round = 0; round < 2; ++round) {
    expect_right({{0, 5 * kCachePage}}, through.get());
    EXPECT_EQ(behaviour->bytes, 3 * kCachePage);
  }
  expect_right({{0, 5 * kCachePage}});
  EXPECT_EQ(behaviour_->bytes, before);
}

TEST_F(CachedStoreTest, WhatWasReadIsNotAskedForAgain) {
  open();
  read_all();
  EXPECT_EQ(behaviour_->bytes, kBytes);
  read_all();
  EXPECT_EQ(behaviour_->bytes, kBytes);
  open();  // by another process, too
  read_all();
  EXPECT_EQ(behaviour_->bytes, 0U);
  EXPECT_EQ(store_->counts().wrong, 0U);
}

TEST_F(CachedStoreTest, AnyRangesInAnyOrderAreRight) {
  for (const bool late : {false, true}) {
    for (const std::uint64_t most : {std::uint64_t{0}, kBytes / 3, UINT64_MAX}) {
      std::filesystem::remove_all(root_);
      open(most);
      behaviour_->late = late;
      behaviour_->near_bytes = 10'000;
      std::mt19937_64 draw(7);
      for (int round = 0; round < 150; ++round) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
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
      if (most == 0) {
        EXPECT_EQ(store_->counts().hits, 0U);
      } else {
        EXPECT_GT(store_->counts().hits, 0U);
      }
    }
  }
}

TEST_F(CachedStoreTest, NothingBeyondWholePagesIsReadAndOnceForEachRun) {
  open();
  expect_right({{5000, 6000}, {6000, 9000}});
  EXPECT_EQ(behaviour_->bytes, 2 * kCachePage);
  EXPECT_EQ(behaviour_->runs, 1U);
  open(0);
  expect_right({{5000, 6000}, {6000, 9000}});
  EXPECT_EQ(behaviour_->bytes, 4000U);
}

// What lies between wanted ranges goes to one place for all requests of a fetch.
TEST_F(CachedStoreTest, GapsThatShareTheirDestinationAreKeptRight) {
  open();
  behaviour_->near_bytes = 3000;
  std::vector<std::byte> nobody(3000);
  std::vector<std::vector<std::byte>> wanted;
  std::deque<Read> reads;
  std::vector<Read*> pointers;
  for (std::uint64_t at = 1000; at < 400'000; at += 3500) {
    for (const bool is_gap : {false, true}) {
      if (!is_gap) wanted.emplace_back(500);
      Read& read = reads.emplace_back();
      read.file = &*file_;
      read.offset = is_gap ? at + 500 : at;
      read.size = is_gap ? 3000 : 500;
      read.destination = is_gap ? nobody.data() : wanted.back().data();
      read.joined = at > 1000 || is_gap;
      pointers.push_back(&read);
    }
  }
  const auto channel = store_->open_channel(ChannelMode::MayWait);
  for (int round = 0; round < 2; ++round) {
    channel->submit(pointers);
    std::array<Read*, 64> done;
    for (std::size_t left = reads.size(); left > 0;) left -= channel->wait(done, 10s);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_TRUE(std::equal(wanted[i].begin(), wanted[i].end(),
                             bytes_.begin() + static_cast<std::ptrdiff_t>(1000 + i * 3500)));
    }
  }
  open();
  read_all();
  EXPECT_EQ(store_->counts().wrong, 0U);
  EXPECT_GT(store_->counts().hits, 90U);
}

TEST_F(CachedStoreTest, OnlyTheMissingPagesOfARunAreAskedFor) {
  open();
  expect_right({{40 * kCachePage, 44 * kCachePage}});
  behaviour_->bytes = 0;
  behaviour_->runs = 0;
  expect_right({{38 * kCachePage, 44 * kCachePage + 1}});
  EXPECT_EQ(behaviour_->bytes, 3 * kCachePage);
  EXPECT_EQ(behaviour_->runs, 2U);  // nothing is near in this store
}

TEST_F(CachedStoreTest, APageThatIsNotItsCheckValuesIsReadAgain) {
  open();
  read_all();
  for (const std::uint64_t page : {std::uint64_t{0}, std::uint64_t{700}, kBytes / kCachePage}) {
    for (const char* suffix : {".data", ".crc"}) {
      open();
      flip(suffix, suffix == std::string(".crc") ? page * 4 + 1 : page * kCachePage + 17);
      read_all();
      EXPECT_EQ(store_->counts().wrong, 1U);
      EXPECT_EQ(behaviour_->bytes, std::min(kCachePage, kBytes - page * kCachePage));
      open();
      read_all();
      EXPECT_EQ(behaviour_->bytes, 0U);  // it was mended
    }
  }
}

TEST_F(CachedStoreTest, FilesThatWereCutOrEmptiedAreReadAgain) {
  for (const char* suffix : {".data", ".crc"}) {
    open();
    read_all();
    std::filesystem::resize_file(kept(suffix), 5000);
    open();
    read_all();
    read_all();
    std::filesystem::remove(kept(suffix));
    open();
    read_all();
    EXPECT_GT(behaviour_->bytes, 0U);
  }
}

TEST_F(CachedStoreTest, AnotherVersionFindsNothing) {
  open();
  read_all();
  bytes_ = random_bytes(kBytes, 2);
  open(UINT64_MAX, "2");
  read_all();
  EXPECT_EQ(behaviour_->bytes, kBytes);
}

TEST_F(CachedStoreTest, ASmallerBoundRemovesAndALargerOneKeeps) {
  open();
  read_all();
  const auto size_of = [&] { return penstock::CacheFolder(root_, "corpus", "1").disk_bytes(); };
  ASSERT_GT(size_of(), kBytes);
  open(kBytes / 2);
  EXPECT_LE(size_of(), kBytes / 2 + 3 * kCachePage);  // the note of the folder, and ends of files of check values
  read_all();
  const std::uint64_t kept_now = kBytes - behaviour_->bytes;
  EXPECT_GT(kept_now, kBytes / 4);
  EXPECT_EQ(store_->counts().wrong, 0U);
  open();
  read_all();
  EXPECT_EQ(behaviour_->bytes, kBytes - kept_now);
}

TEST_F(CachedStoreTest, AReadThatWasCancelledIsNotKept) {
  open();
  auto far = std::make_shared<CancellingStore>();
  far->put("corpus/stream.bin", bytes_);
  store_ = std::make_shared<CachedStore>(far, std::make_shared<LocalStore>(), root_);
  file_.emplace("corpus/stream.bin", kBytes, store_.get());
  const std::array contents{CachedStore::Content{"corpus", "1"}};
  const std::array files{penstock::CacheableFile{"corpus/stream.bin", kBytes}};
  store_->keep(contents, files, UINT64_MAX);
  const auto channel = store_->open_channel(ChannelMode::MayWait);
  std::vector<std::byte> out(3 * kCachePage);
  Read read;
  read.file = &*file_;
  read.size = out.size();
  read.destination = out.data();
  read.cancelled = &far->flag;
  Read* one = &read;
  channel->submit({&one, 1});
  ASSERT_EQ(channel->wait({&one, 1}, 10s), 1U);
  ASSERT_TRUE(far->flag);
  EXPECT_EQ(store_->counts().filled, 0U);
  open();
  expect_right({{0, 3 * kCachePage}});
  EXPECT_EQ(behaviour_->bytes, 3 * kCachePage);
}

TEST_F(CachedStoreTest, AReadThatFailsIsAnErrorOfItsOwnAndIsNotKept) {
  open();
  behaviour_->fail_offset = 8 * kCachePage;
  behaviour_->failures = 1;
  const auto results = read({{0, kCachePage}, {8 * kCachePage, 9 * kCachePage}});
  EXPECT_EQ(results[0].outcome, Outcome::Done);
  EXPECT_EQ(results[1].outcome, Outcome::Failed);
  EXPECT_TRUE(results[1].failed);
  EXPECT_EQ(store_->counts().filled, 1U);
  expect_right({{0, kCachePage}, {8 * kCachePage, 9 * kCachePage}});
}

TEST_F(CachedStoreTest, WhatIsKeptIsAtHandForWhoMayNotWait) {
  open();
  EXPECT_EQ(read({{100, 9000}}, ChannelMode::NonBlocking)[0].outcome, Outcome::NotAtHand);
  expect_right({{100, 9000}});
  EXPECT_EQ(read({{100, 9000}}, ChannelMode::NonBlocking)[0].outcome, Outcome::NotAtHand);  // no file is open yet
  expect_right({{100, 9000}});
  const auto found = read({{100, 9000}}, ChannelMode::NonBlocking);
  ASSERT_EQ(found[0].outcome, Outcome::Done);
  EXPECT_TRUE(std::equal(found[0].bytes.begin(), found[0].bytes.end(), bytes_.begin() + 100));
  EXPECT_EQ(read({{100, 90'000}}, ChannelMode::NonBlocking)[0].outcome, Outcome::NotAtHand);
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
  EXPECT_EQ(store_->counts().failed, 1U);
  read_all();
  EXPECT_EQ(store_->counts().failed, 1U);  // it is not tried again
  open();
  read_all();
  open();
  read_all();
  EXPECT_EQ(behaviour_->bytes, 0U);
}

TEST_F(CachedStoreTest, AFolderThatWasClearedIsFilledAgain) {
  open();
  for (const auto& each : std::filesystem::directory_iterator(root_)) std::filesystem::remove_all(each);
  read_all();
  EXPECT_EQ(store_->counts().stopped_by, 0);
  open();
  read_all();
  EXPECT_EQ(behaviour_->bytes, 0U);
}

TEST_F(CachedStoreTest, AFolderThatCannotBeWrittenIsAnError) {
  std::ofstream(root_ + "/file") << "x";
  for (const std::string& folder : {root_ + "/file", root_ + "/file/below"}) {
    try {
      CachedStore(std::make_shared<MemoryStore>(), std::make_shared<LocalStore>(), folder);
      ADD_FAILURE() << folder;
    } catch (const penstock::Error& error) {
      EXPECT_EQ(error.kind(), penstock::ErrorKind::IoError);
      EXPECT_NE(std::string(error.what()).find("give cache="), std::string::npos);
    }
  }
}

TEST_F(CachedStoreTest, NothingIsKeptBeforeItIsSaidWhat) {
  far_ = std::make_shared<MemoryStore>(behaviour_);
  far_->put("corpus/stream.bin", bytes_);
  store_ = std::make_shared<CachedStore>(far_, std::make_shared<LocalStore>(), root_);
  file_.emplace("corpus/stream.bin", kBytes, store_.get());
  read_all();
  EXPECT_TRUE(std::filesystem::is_empty(root_));
  EXPECT_EQ(store_->counts().filled, 0U);
}

TEST_F(CachedStoreTest, AForkedChildIsRefused) {
  open();
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      (void)store_->open_channel(ChannelMode::MayWait);
      ::_exit(1);
    } catch (const penstock::Error& error) {
      ::_exit(std::string(error.what()).find("spawn") == std::string::npos ? 2 : 0);
    }
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
