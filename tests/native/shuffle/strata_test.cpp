#include "shuffle/strata.h"

#include "shuffle/reciprocal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace penstock::shuffle {
namespace {

Strata make_strata(const std::vector<std::uint64_t>& weights, std::uint64_t seed = 0) {
  std::vector<Strata::Member> members;
  for (std::size_t i = 0; i < weights.size(); ++i) members.push_back({weights[i], Key().absorb(seed).absorb(i)});
  return Strata(std::move(members));
}

bool is_word(const Strata& strata) {
  return strata.total() <= Strata::kMostWord;
}

/// The first `count` slots of what is no word, all of them sorted by their exact times.
std::vector<Slot> sorted_slots(const Strata& strata, std::size_t count) {
  struct Timed {
    Wide above;            // of k + u / 2^32, times 2^32 …
    std::uint64_t weight;  // … divided by this
    Slot slot;
  };
  std::vector<Timed> all;
  const auto members = strata.members();
  for (std::uint32_t s = 0; s < members.size(); ++s) {
    const auto most =
        static_cast<std::uint64_t>(Wide{members[s].weight} * (count + members.size()) / strata.total()) + 2;
    for (std::uint64_t k = 0; k < most; ++k) {
      all.push_back({(Wide{k} << 32) + (members[s].key.at(k) >> 32), members[s].weight, {k, s}});
    }
  }
  std::sort(all.begin(), all.end(), [](const Timed& a, const Timed& b) {
    const Wide left = a.above * b.weight;
    const Wide right = b.above * a.weight;
    return left != right ? left < right : a.slot.member < b.slot.member;
  });
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < count; ++i) slots.push_back(all[i].slot);
  return slots;
}

std::vector<Slot> found(const Strata& strata, std::uint64_t first, std::uint64_t stride, std::size_t count) {
  std::vector<Slot> out(count);
  strata.find(first, stride, out);
  return out;
}

/// Weights of `members`, some of them very unequal.
std::vector<std::uint64_t> random_weights(std::mt19937_64& random, std::size_t members) {
  std::vector<std::uint64_t> weights;
  for (std::size_t i = 0; i < members; ++i) {
    const auto bits = std::uniform_int_distribution<int>(0, 20)(random);
    weights.push_back(std::uniform_int_distribution<std::uint64_t>(1, std::uint64_t{1} << bits)(random));
  }
  return weights;
}

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

TEST(Strata, AreAllSlotsInTheOrderOfTheirTimesAndThoseOfWordsNeverChange) {
  std::mt19937_64 random(1);
  std::uint64_t words = 0;
  for (const std::size_t members : {1U, 2U, 3U, 5U, 20U, 60U}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const std::vector<std::uint64_t> weights =
          seed < 2 ? std::vector<std::uint64_t>(members, seed + 1) : random_weights(random, members);
      const Strata strata = make_strata(weights, seed);
      constexpr std::size_t kCount = 3000;
      const std::vector<Slot> slots = found(strata, 0, 1, kCount);
      if (!is_word(strata)) {
        ASSERT_EQ(slots, sorted_slots(strata, kCount));
      } else {
        for (const Slot& slot : slots) words = (words ^ slot.member) * 0x100000001b3;
      }
      for (const std::uint64_t stride : {1U, 2U, 7U, 64U, 333U}) {
        for (const std::uint64_t first : {0U, 1U, 5U, 40U, 1234U}) {
          const std::vector<Slot> some = found(strata, first, stride, (kCount - 1 - first) / stride + 1);
          for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], slots[first + i * stride]);
        }
      }
      for (std::size_t q = 0; q < kCount; q += 17) ASSERT_EQ(found(strata, q, 1, 1)[0], slots[q]);
    }
  }
  EXPECT_EQ(words, 9012512926112868837U);
}

std::vector<std::uint64_t> counted(const Strata& strata, std::uint64_t position) {
  std::vector<std::uint64_t> counts(strata.members().size());
  strata.count(position, counts);
  return counts;
}

/// The part of all slots that a member gets.
double part_of(const Strata& strata, std::size_t member) {
  return static_cast<double>(strata.members()[member].weight) / static_cast<double>(strata.total());
}

/// From `first` on slots of a member come in order; at some, a look-up alone, the inverse and the counts say the same.
void expect_agreement(const Strata& strata, std::uint64_t first, std::size_t count, std::size_t every) {
  std::vector<std::uint64_t> given = counted(strata, first);
  ASSERT_EQ(std::accumulate(given.begin(), given.end(), std::uint64_t{0}), first);
  const std::vector<Slot> slots = found(strata, first, 1, count);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(slots[i].number, given[slots[i].member]++);
    if (i % every != 0) continue;
    ASSERT_EQ(slots[i], found(strata, first + i, 1, 1)[0]);
    ASSERT_EQ(strata.position_of(slots[i]), first + i);
    ASSERT_EQ(counted(strata, first + i + 1), given);
  }
  for (const std::uint64_t stride : {2U, 9U, 50U}) {
    const std::vector<Slot> some = found(strata, first, stride, (count - 1) / stride + 1);
    for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], slots[i * stride]);
  }
}

// The proof's bound, at every position, from positions far out too.
TEST(Strata, GiveEachMemberItsShareAtEveryPosition) {
  std::mt19937_64 random(2);
  double worst = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t members = std::uniform_int_distribution<std::size_t>(1, 20)(random);
    std::vector<std::uint64_t> weights = random_weights(random, members);
    if (trial % 2 == 1) {
      for (std::uint64_t& weight : weights) weight = weight % 7 + 1;
    }
    const Strata strata = make_strata(weights, static_cast<std::uint64_t>(trial));
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1} << 40, (std::uint64_t{1} << 61) + 12345}) {
      expect_agreement(strata, first, 2000, 97);
      std::vector<std::uint64_t> given = counted(strata, first);
      std::uint64_t position = first;
      for (const Slot& slot : found(strata, first, 1, 2000)) {
        ++given[slot.member];
        ++position;
        for (std::size_t s = 0; s < members; ++s) {
          const Wide share = Wide{position} * strata.members()[s].weight;
          const auto whole = static_cast<std::uint64_t>(share / strata.total());
          const double rest = static_cast<double>(share % strata.total()) / static_cast<double>(strata.total());
          const double off = std::abs(static_cast<double>(static_cast<std::int64_t>(given[s] - whole)) - rest);
          ASSERT_LT(off, 1 + static_cast<double>(members) * part_of(strata, s));
          worst = std::max(worst, off);
        }
      }
    }
  }
  EXPECT_GT(worst, 1) << "no jitter at all";
}

// Where W / w is beyond 2^31, too. With some keys that holds by luck.
TEST(Strata, HoldForWeightsOfAnySize) {
  constexpr auto power = [](unsigned bits) { return std::uint64_t{1} << bits; };
  const std::vector<std::vector<std::uint64_t>> all{{power(61) + 1, 1},
                                                    {power(60) + 1, power(60) + 3, power(59) + 7, 5},
                                                    {1, 15'000'000'000'001, 1'234'567'890'123},
                                                    {power(31) + 1, 1, 1},
                                                    {1, 3, power(33) + 1, 1}};
  for (const std::vector<std::uint64_t>& weights : all) {
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
      const Strata strata = make_strata(weights, seed);
      for (const std::uint64_t first : {std::uint64_t{0}, power(35), power(63) - 600}) {
        expect_agreement(strata, first, 100, 1);
      }
    }
  }
}

// With fixed phases 1:1 would alternate, and each of 2 ranks would see one member alone. Jitter alone mends that, but
// not 2:1 on 3 ranks, where the middle one would see half of the first member for ever, or 3:3:1:1 on 8.
TEST(Strata, HaveNoPeriodThatRanksFallInStepWith) {
  const std::vector<std::vector<std::uint64_t>> all{
      {1, 1},  {2, 1},       {1, 1, 1, 1},     {67, 33},
      {11, 5}, {3, 3, 1, 1}, {20'001, 10'000}, std::vector<std::uint64_t>(8, 5)};
  for (const std::vector<std::uint64_t>& weights : all) {
    const Strata strata = make_strata(weights, 4);
    for (const std::uint64_t ranks : {2U, 3U, 4U, 8U, 16U}) {
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        constexpr std::size_t kCount = 50'000;
        std::vector<double> seen(weights.size());
        for (const Slot& slot : found(strata, rank, ranks, kCount)) ++seen[slot.member];
        for (std::size_t s = 0; s < weights.size(); ++s) {
          EXPECT_NEAR(seen[s] / kCount, part_of(strata, s), is_word(strata) ? 0.03 : 0.08)
              << weights.size() << " members, rank " << rank << " of " << ranks;
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::shuffle
