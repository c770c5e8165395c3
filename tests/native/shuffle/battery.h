// A battery of statistical tests for families of permutations: what a shuffle by (seed, epoch) must pass, and what
// weaker constructions fail (battery_test.cpp shows both).
//
// Every test is a chi-square over independent keys, or over samples few enough beside the domain to be independent in
// effect. A family is rejected if any |z| is beyond what chance gives once in 10^6 runs of the whole battery.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penstock::shuffle {

/// The permutation of [0, n) that (seed, epoch) gives: index -> image.
using Images = std::function<std::uint64_t(std::uint64_t)>;
using Family = std::function<Images(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch)>;

struct Finding {
  std::string test;
  double z = 0;  // of a standard normal under a perfect shuffle; both signs count: too even is not random either
};

class Battery {
 public:
  /// `scale` divides the numbers of samples, for sanitizers.
  explicit Battery(Family family, unsigned scale = 1) : family_(std::move(family)), scale_(scale) {}

  /// Runs all tests.
  std::vector<Finding> run();
  /// The findings beyond alpha = 1e-6, corrected for the number of tests.
  static std::vector<Finding> rejections(const std::vector<Finding>& findings);

 private:
  void all_orders(std::uint64_t n);
  void small_domain(std::uint64_t n, bool by_epoch);
  void fixed_points(std::uint64_t n);
  void lags(std::uint64_t n);
  void grid(std::uint64_t n);
  void epoch_against_epoch(std::uint64_t n);
  void seed_bits(std::uint64_t n);

  [[nodiscard]] std::uint64_t samples(std::uint64_t count) const { return count / scale_; }
  /// Records the chi-square of `counts` against equal expectations, or against `expected`.
  void judge(std::string test, const std::vector<std::uint32_t>& counts, const std::vector<double>& expected = {});

  Family family_;
  unsigned scale_;
  std::vector<Finding> findings_;
};

}  // namespace penstock::shuffle
