#include "shuffle/reciprocal.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace penstock::shuffle {
namespace {

TEST(Reciprocal, DividesAsTheProcessorDoes) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> divisors{1, 2, 3, 5, UINT64_MAX, UINT64_MAX - 1};
  for (unsigned bits = 1; bits < 64; ++bits) {
    const std::uint64_t power = std::uint64_t{1} << bits;
    divisors.insert(divisors.end(), {power - 1, power, power + 1, random() >> (63 - bits) | 1});
  }
  for (const std::uint64_t divisor : divisors) {
    const Reciprocal reciprocal(divisor);
    const Wide most = (Wide{divisor} << 64) - 1;
    std::vector<Wide> numbers{0,    1,       divisor - 1, divisor, Wide{divisor} + 1, Wide{divisor} * UINT64_MAX,
                              most, most - 1};
    for (int i = 0; i < 2000; ++i) {
      const Wide number = (Wide{random()} << 64 | random()) % (most + 1 == 0 ? most : most + 1);
      numbers.push_back(number >> (random() % 128));
      numbers.push_back(number / divisor * divisor);
      if (number >= divisor) numbers.push_back(number / divisor * divisor - 1);
    }
    for (const Wide number : numbers) {
      ASSERT_TRUE(reciprocal.holds(number));
      const auto [quotient, remainder] = reciprocal.divide(number);
      ASSERT_TRUE(quotient == number / divisor && remainder == number % divisor)
          << divisor << ", " << static_cast<std::uint64_t>(number >> 64) << ":" << static_cast<std::uint64_t>(number);
    }
    ASSERT_FALSE(reciprocal.holds(Wide{divisor} << 64));
  }
}

}  // namespace
}  // namespace penstock::shuffle
