// The loops over a cell's values: both forms against plain ones, bit for bit.
#include "core/columns/cells/kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

namespace penstock::cells {
namespace {

std::vector<const Kernels*> forms() {
  std::vector<const Kernels*> all{&kernels_generic()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) all.push_back(&kernels_avx2());
#endif
  return all;
}

template <typename Gene, typename Value>
void expect_scatters(const PackedRuns& runs, const std::byte* records, const std::vector<Gene>& genes,
                     const std::vector<Value>& values, bool rises) {
  constexpr std::uint64_t kMapped = 3000;
  std::vector<std::int32_t> places(kMapped, -1);
  for (std::int32_t gene = 0; gene < 3000; gene += 2) places[static_cast<std::size_t>(gene)] = 1499 - gene / 2;
  const std::int64_t last = !rises ? -2 : genes.empty() ? -1 : std::int64_t{genes.back()};
  for (const bool selects : {false, true}) {
    std::vector<float> row(selects ? 1500 : kMapped);
    std::vector<float> expected(row.size());
    for (std::size_t i = 0; i < genes.size(); ++i) {
      const std::int64_t place = genes[i] >= kMapped ? -1 : selects ? places[genes[i]] : std::int64_t{genes[i]};
      if (place >= 0) expected[static_cast<std::size_t>(place)] = static_cast<float>(values[i]);
    }
    const std::int32_t* const mapped = selects ? places.data() : nullptr;
    ASSERT_EQ(runs.scatter(records, genes.size(), mapped, kMapped, row.data()), last);
    ASSERT_EQ(row, expected);
    ASSERT_EQ(runs.clear(records, genes.size(), mapped, kMapped, row.data()), last);
    ASSERT_EQ(row, std::vector<float>(row.size()));
  }
}

template <typename Gene, typename Value>
void expect_splits(const PackedRuns& runs) {
  std::mt19937 random(3);
  for (std::uint64_t count = 0; count < 70; ++count) {
    for (std::uint64_t bad = 0; bad <= count; ++bad) {  // the gene that does not rise; none if it is the last
      std::vector<Gene> genes(count);
      std::vector<Value> values(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        genes[i] = static_cast<Gene>(i == 0 ? random() % 5 : genes[i - 1] + (i == bad ? 0 : 1 + random() % 900));
        values[i] = static_cast<Value>(random() % 251);
      }
      constexpr std::uint64_t kBytes = sizeof(Gene) + sizeof(Value);
      // Of exactly the records' size, so that a sanitizer sees a read behind them.
      const std::unique_ptr<std::byte[]> records(new std::byte[count * kBytes]);
      for (std::uint64_t i = 0; i < count; ++i) {
        std::memcpy(records.get() + i * kBytes, &genes[i], sizeof(Gene));
        std::memcpy(records.get() + i * kBytes + sizeof(Gene), &values[i], sizeof(Value));
      }
      std::vector<std::int32_t> found(count);
      std::vector<float> counts(count);
      const bool rises = bad == 0 || bad >= count;
      ASSERT_EQ(runs.split(records.get(), count, found.data(), counts.data()), rises) << count << " " << bad;
      expect_scatters<Gene, Value>(runs, records.get(), genes, values, rises);
      for (std::uint64_t i = 0; i < count; ++i) {
        ASSERT_EQ(found[i], static_cast<std::int32_t>(genes[i]));
        ASSERT_EQ(counts[i], static_cast<float>(values[i]));
      }
    }
  }
}

template <typename Gene, typename Runs>
void expect_splits_of(const Runs& runs) {
  expect_splits<Gene, std::uint8_t>(runs.u1);
  expect_splits<Gene, std::uint16_t>(runs.u2);
  expect_splits<Gene, std::uint32_t>(runs.u4);
  expect_splits<Gene, float>(runs.f4);
}

TEST(Kernels, PackedRecordsAreSplitAndAGeneThatDoesNotRiseIsSeen) {
  for (const Kernels* form : forms()) {
    expect_splits_of<std::uint16_t>(form->of_u2);
    expect_splits_of<std::uint32_t>(form->of_u4);
  }
}

TEST(Kernels, LogarithmsAreWithinAUnitInTheLastPlaceAndTheSameInEachForm) {
  std::mt19937_64 random(1);
  std::vector<double> values{0, 1, 0.5, 1e-300, 5e-324, 1e-17, 1e300, 1.5e16, std::numeric_limits<double>::max()};
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(std::exp(std::uniform_real_distribution<double>(-40, 40)(random)));
    values.push_back(std::uniform_real_distribution<double>(0, 3)(random));
  }
  std::vector<double> first = values;
  kernels_generic().log1p(first.data(), first.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto exact = static_cast<double>(std::log1p(static_cast<long double>(values[i])));
    ASSERT_LE(std::abs(first[i] - exact), std::nextafter(exact, HUGE_VAL) - exact) << values[i];
  }
  for (const Kernels* form : forms()) {
    std::vector<double> found = values;
    form->log1p(found.data(), found.size());
    ASSERT_EQ(std::memcmp(found.data(), first.data(), 8 * found.size()), 0);
  }
}

TEST(Kernels, SumsAndQuotientsAreTheSameInEachForm) {
  std::mt19937_64 random(2);
  for (std::uint64_t count = 0; count < 100; ++count) {
    std::vector<double> values;
    std::vector<double> divisors;
    std::vector<double> quotients;
    long double exact = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      values.push_back(std::uniform_real_distribution<double>(0, 10)(random));
      divisors.push_back(std::uniform_real_distribution<double>(0.1, 10)(random));
      quotients.push_back(values[i] / 3.7 / divisors[i]);
      exact += values[i];
    }
    const double sum = kernels_generic().sum(values.data(), count);
    EXPECT_NEAR(sum, static_cast<double>(exact), 1e-12);
    for (const Kernels* form : forms()) {
      EXPECT_EQ(form->sum(values.data(), count), sum);
      std::vector<double> found = values;
      form->divide(found.data(), count, 3.7);
      form->divide_each(found.data(), divisors.data(), count);
      EXPECT_EQ(found, quotients);
    }
  }
}

TEST(Kernels, WhatIsNotFiniteOrNegativeIsSeenAtEachPlace) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const Kernels* form : forms()) {
    for (std::uint64_t count = 1; count < 20; ++count) {
      std::vector<double> values(count, 1.5);
      values[0] = -0.0;
      EXPECT_TRUE(form->all_finite(values.data(), count, true));
      for (std::uint64_t at = 0; at < count; ++at) {
        for (const double bad : {kNan, -kNan, kInfinite, -kInfinite, -1.0, -5e-324}) {
          std::vector<double> spoilt = values;
          spoilt[at] = bad;
          EXPECT_FALSE(form->all_finite(spoilt.data(), count, true)) << bad;
          EXPECT_EQ(form->all_finite(spoilt.data(), count, false), std::isfinite(bad)) << bad;
          EXPECT_EQ(form->has_no_nan(spoilt.data(), count), !std::isnan(bad));
        }
      }
    }
  }
}

TEST(Kernels, AStreamedCopyIsACopyAtEachAlignment) {
  std::vector<std::byte> from(300);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251 + 1);
  for (const Kernels* form : forms()) {
    for (std::size_t shift = 0; shift < 70; ++shift) {
      for (const std::size_t bytes : {0, 1, 7, 31, 32, 33, 100, 229}) {
        std::vector<std::byte> to(300);
        form->stream(from.data(), bytes, to.data() + shift);
        std::vector<std::byte> expected(300);
        std::copy_n(from.begin(), bytes, expected.begin() + static_cast<std::ptrdiff_t>(shift));
        ASSERT_EQ(to, expected) << shift << " " << bytes;
      }
    }
  }
}

TEST(Kernels, GenesWithoutAPlaceAreLeftOut) {
  for (const Kernels* form : forms()) {
    std::vector<std::uint32_t> genes{0, 2, 3, 5, 6, 4'000'000'000};
    std::vector<double> values{1, 2, 3, 4, 5, 6};
    const std::array<std::int32_t, 6> places{7, -1, 1, -1, -1, 0};
    EXPECT_EQ(form->select(genes.data(), values.data(), genes.size(), places.data(), places.size()), 3U);
    EXPECT_EQ(std::vector<std::uint32_t>(genes.begin(), genes.begin() + 3), (std::vector<std::uint32_t>{7, 1, 0}));
    EXPECT_EQ(std::vector<double>(values.begin(), values.begin() + 3), (std::vector<double>{1, 2, 4}));
  }
}

}  // namespace
}  // namespace penstock::cells
