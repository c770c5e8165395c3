#include "core/io/cache/block_share.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::testing {
namespace {

using Files = std::vector<BlockShare::File>;

std::uint64_t kept_bytes(const Files& files, const BlockShare& share) {
  std::uint64_t bytes = 0;
  for (const auto& file : files) {
    for (std::uint64_t begin = 0, block = 0; begin < file.bytes; begin += kCacheBlock, ++block) {
      if (share.keeps(file.phase, block)) bytes += std::min(kCacheBlock, file.bytes - begin);
    }
  }
  return bytes;
}

Files files_of(std::size_t count, std::uint64_t bytes) {
  Files files;
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
    EXPECT_EQ(BlockShare::within(files, std::uint64_t{1} << 40U).parts(), BlockShare::kParts);
  }
  EXPECT_EQ(BlockShare::within({}, 0).parts(), BlockShare::kParts);
}

TEST(BlockShare, LargerSharesKeepWhatSmallerOnesDoSpreadEvenlyOverAFile) {
  const std::uint64_t phase = BlockShare::phase_of("00000/stream.bin");
  std::vector<std::uint64_t> kept;  // by hundreds of blocks, of a quarter
  for (std::uint64_t block = 0; block < 10'000; ++block) {
    if (block % 100 == 0) kept.push_back(0);
    kept.back() += BlockShare(BlockShare::kParts / 4).keeps(phase, block) ? 1 : 0;
    bool was_kept = false;
    for (std::uint64_t parts = 0; parts <= BlockShare::kParts; parts += 4096) {
      const bool is_kept = BlockShare(parts).keeps(phase, block);
      EXPECT_TRUE(is_kept || !was_kept);
      was_kept = is_kept;
    }
    EXPECT_TRUE(was_kept);
  }
  for (const std::uint64_t each : kept) EXPECT_NEAR(static_cast<double>(each), 25, 4);
}

}  // namespace
}  // namespace penstock::testing
