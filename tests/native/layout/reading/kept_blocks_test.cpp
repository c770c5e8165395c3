#include "layout/reading/kept_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace penstock::layout {
namespace {

TEST(KeptBlocks, ASizeThatIsOnlySaidTakesNoMemory) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 40, std::uint64_t{1} << 52, UINT64_MAX / 2, UINT64_MAX}) {
    const File file("nothing", bytes);
    std::vector<std::unique_ptr<KeptBlocks>> many;  // as of the shards of a manifest
    for (int i = 0; i < 1000; ++i) many.push_back(std::make_unique<KeptBlocks>(file));
    std::array<std::byte, 16> room{};
    EXPECT_EQ(many[0]->find(bytes - 16, 16, room.data()), nullptr);
    many[0]->keep(0, room);  // too large to keep any of it
    EXPECT_EQ(many[0]->find(0, 16, room.data()), nullptr);
    EXPECT_EQ(KeptBlocks::most_bytes(file), UINT64_MAX);
  }
}

TEST(KeptBlocks, WhatIsKeptIsFound) {
  const File file("nothing", 5000);
  KeptBlocks kept(file);
  const std::vector<std::byte> bytes(5000, std::byte{7});
  std::array<std::byte, 16> room{};
  EXPECT_EQ(kept.find(4090, 16, room.data()), nullptr);
  kept.keep(0, bytes);
  ASSERT_NE(kept.find(4090, 16, room.data()), nullptr);
  EXPECT_EQ(room[15], std::byte{7});
}

TEST(KeptBlocks, ARangeOfAFileIsKeptByItself) {
  KeptBlocks kept(10'000, 15'000);  // of blocks 2 and 3
  const std::vector<std::byte> bytes(8192, std::byte{7});
  std::array<std::byte, 16> room{};
  EXPECT_EQ(kept.find(12'280, 16, room.data()), nullptr);
  kept.keep(8192, bytes);
  ASSERT_NE(kept.find(12'280, 16, room.data()), nullptr);
  EXPECT_EQ(room[15], std::byte{7});
  std::array<std::byte, KeptBlocks::kBlock> block{};
  EXPECT_TRUE(kept.copy_block(12'288, 15'000, block.data()));
  EXPECT_EQ(block[2711], std::byte{7});
  EXPECT_EQ(block[2712], std::byte{0});
}

}  // namespace
}  // namespace penstock::layout
