// The production permutation passes the battery; what is weaker fails it. A test of quality that everything passes
// would say nothing.
#include "battery.h"

#include "shuffle/feistel.h"
#include "shuffle/permutation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

namespace penstock::shuffle {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned kScale = 6;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr unsigned kScale = 6;
#else
constexpr unsigned kScale = 1;
#endif
#else
constexpr unsigned kScale = 1;
#endif

std::string listed(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding.test + ": z = " + std::to_string(finding.z) + "\n";
  return text;
}

std::vector<Finding> rejections(Family family) {
  const std::vector<Finding> findings = Battery(std::move(family), kScale).run();
  const std::vector<Finding> rejected = Battery::rejections(findings);
  ::testing::Test::RecordProperty("rejections", fmt::format("{} of {}", rejected.size(), findings.size()));
  fmt::print("{} of {} tests reject\n", rejected.size(), findings.size());
  return rejected;
}

Images production(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch) {
  return [permutation = Permutation(n, seed, epoch)](std::uint64_t index) { return permutation(index); };
}

/// The production permutation, table and key schedule included, but for the network's rounds and hash.
template <unsigned Rounds, typename Hash>
Images feistel(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch) {
  if (n <= kTableSize) return production(n, seed, epoch);
  const Feistel<Rounds, Hash> network(n, Key().absorb(seed).absorb(epoch).absorb(n));
  return [network](std::uint64_t index) { return network.forward(index); };
}

/// One multiplication, the halves of the key before and after it.
struct OneMultiply {
  static std::uint32_t apply(std::uint32_t half, std::uint32_t low, std::uint32_t high) {
    std::uint32_t h = (half ^ low) * 0x85ebca6bU;
    return (h ^ (h >> 15)) + high;
  }
};

/// Linear over bits, as a CRC is: shifts and exclusive or.
struct XorShift {
  static std::uint32_t apply(std::uint32_t half, std::uint32_t low, std::uint32_t high) {
    std::uint32_t h = half ^ low;
    h ^= h << 13;
    h ^= h >> 17;
    h ^= h << 5;
    return h ^ high;
  }
};

/// index -> step * index + start modulo n, step prime to n.
Images affine(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch) {
  const Key key = Key().absorb(seed).absorb(epoch).absorb(n);
  std::uint64_t step = key.at(0) % n;
  while (std::gcd(step, n) != 1) step = (step + 1) % n;
  const std::uint64_t start = key.at(1) % n;
  return [=](std::uint64_t index) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(step) * index + start) % n);
  };
}

TEST(Battery, PassesTheProductionPermutation) {
  EXPECT_EQ(listed(rejections(production)), "");
}

TEST(Battery, RejectsFourRounds) {
  EXPECT_GE(rejections(feistel<4, Fmixk>).size(), 5U);
}

TEST(Battery, RejectsSixRoundsOfAOneMultiplyHash) {
  EXPECT_GE(rejections(feistel<6, OneMultiply>).size(), 3U);
}

TEST(Battery, RejectsSixRoundsOfAHashThatIsLinearOverBits) {
  EXPECT_GE(rejections(feistel<6, XorShift>).size(), 3U);
}

TEST(Battery, RejectsAnAffineMap) {
  EXPECT_GE(rejections(affine).size(), 40U);
}

}  // namespace
}  // namespace penstock::shuffle
