#include "core/io/cache/block_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using penstock::BlockShare;
using penstock::kCacheBlock;

std::uint64_t kept_bytes(const std::vector<BlockShare::File>& files, const BlockShare& share) {
  std::uint64_t bytes = 0;
  for (const auto& file : files) {
    for (std::uint64_t begin = 0, block = 0; begin < file.bytes; begin += kCacheBlock, ++block) {
      if (share.keeps(file.phase, block)) bytes += std::min(kCacheBlock, file.bytes - begin);
    }
  }
  return bytes;
}

std::vector<BlockShare::File> files_of(std::size_t count, std::uint64_t bytes) {
  std::vector<BlockShare::File> files;
  for (std::size_t i = 0; i < count; ++i) files.push_back({BlockShare::phase_of(std::to_string(i)), bytes});
  return files;
}

TEST(BlockShare, TakesWhatMayBeTakenAndNoMore) {
  for (const auto& files :
       {files_of(1, 1000 * kCacheBlock + 5), files_of(3000, 70'000), files_of(7, 300 * kCacheBlock)}) {
    const std::uint64_t all = kept_bytes(files, BlockShare(BlockShare::kParts));
    for (const double part : {0.0, 0.01, 0.3, 0.5, 0.9}) {
      const auto most = static_cast<std::uint64_t>(part * static_cast<double>(all));
      const std::uint64_t kept = kept_bytes(files, BlockShare::within(files, most));
      EXPECT_LE(kept, most);
      // Check values and whole pages are counted, which are up to a sixteenth of the small files here.
      EXPECT_GE(static_cast<double>(kept), 0.88 * static_cast<double>(most) - 2.0 * kCacheBlock);
    }
  }
}

TEST(BlockShare, KeepsAllWhereThereIsRoom) {
  const auto files = files_of(100, 3 * kCacheBlock);
  EXPECT_EQ(BlockShare::within(files, std::uint64_t{1} << 40U).parts(), BlockShare::kParts);
  EXPECT_EQ(BlockShare::within({}, 0).parts(), BlockShare::kParts);
}

TEST(BlockShare, LargerSharesKeepWhatSmallerOnesDo) {
  const std::uint64_t phase = BlockShare::phase_of("00000/stream.bin");
  for (std::uint64_t block = 0; block < 2000; ++block) {
    bool was_kept = false;
    for (std::uint64_t parts = 0; parts <= BlockShare::kParts; parts += 4096) {
      const bool is_kept = BlockShare(parts).keeps(phase, block);
      EXPECT_TRUE(is_kept || !was_kept);
      was_kept = is_kept;
    }
    EXPECT_TRUE(was_kept);
  }
}

TEST(BlockShare, SpreadsEvenlyOverAFile) {
  const std::uint64_t phase = BlockShare::phase_of("a");
  const BlockShare share(BlockShare::kParts / 4);
  for (std::uint64_t begin = 0; begin < 10'000; begin += 100) {
    int kept = 0;
    for (std::uint64_t block = begin; block < begin + 100; ++block) kept += share.keeps(phase, block) ? 1 : 0;
    EXPECT_NEAR(kept, 25, 4);
  }
}

}  // namespace
