#include "core/base/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace penstock {
namespace {

using Bytes = std::span<const std::byte>;

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 random(1);
  std::vector<std::byte> data(count);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(crc32c(std::as_bytes(std::span("123456789", 9))), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
  // RFC 3720, B.4: 32 bytes of zeros, of ones, and ascending.
  std::vector<std::byte> data(32, std::byte{0});
  EXPECT_EQ(crc32c(data), 0x8a9136aaU);
  std::fill(data.begin(), data.end(), std::byte{0xff});
  EXPECT_EQ(crc32c(data), 0x62a8ab43U);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(data), 0x46dd794eU);
}

TEST(Crc32c, TheTableAndTheProcessorAgreeAtEveryLengthAndPlaceAndGoOnFromWhatCameBefore) {
  const std::vector<std::byte> data = random_bytes(20'000);
  for (std::size_t first = 0; first < 9; ++first) {
    for (std::size_t size = 0; size + first <= 300; ++size) {
      const Bytes part = Bytes(data).subspan(first, size);
      ASSERT_EQ(crc32c(part), crc32c_portable(part)) << first << " " << size;
      ASSERT_EQ(crc32c(part.subspan(size / 3), crc32c(part.first(size / 3))), crc32c(part)) << first << " " << size;
    }
  }
  // Long ones are taken in thirds of 4 KiB.
  for (const std::size_t size : {4079, 4080, 4081, 4088, 4096, 8159, 8160, 8161, 8192, 19'993}) {
    for (const std::uint32_t before : {0U, 1U, 0xdeadbeefU}) {
      const Bytes part = Bytes(data).subspan(3, size);
      EXPECT_EQ(crc32c(part, before), crc32c_portable(part, before)) << size;
    }
  }
}

TEST(Crc32c, BlocksHaveTheValuesOfEach) {
  const std::vector<std::byte> data = random_bytes(100'000);
  for (const std::size_t block : {1, 7, 8, 24, 4096}) {
    for (const std::size_t size : {0, 1, 7, 8, 23, 24, 4096, 3 * 4096, 3 * 4096 + 1, 7 * 4096 - 1, 99'991}) {
      const Bytes all = Bytes(data).subspan(1, size);  // of any alignment
      std::vector<std::uint32_t> expected{42};
      for (std::size_t at = 0; at < size; at += block) {
        expected.push_back(crc32c_portable(all.subspan(at, std::min(block, size - at))));
      }
      std::vector<std::uint32_t> found{42};
      crc32c_blocks(all, block, found);
      ASSERT_EQ(found, expected) << block << " " << size;
    }
  }
}

}  // namespace
}  // namespace penstock
