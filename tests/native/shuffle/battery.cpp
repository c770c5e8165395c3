#include "battery.h"

#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace penstock::shuffle {
namespace {

/// Wilson and Hilferty's cube root makes a chi-square of `freedom` degrees a standard normal.
double normal_score(double chi, double freedom) {
  const double spread = 2.0 / (9.0 * freedom);
  return (std::cbrt(chi / freedom) - (1.0 - spread)) / std::sqrt(spread);
}

/// ceil(sqrt n) made even: the lag at which a Feistel network on l * b + r keeps r and steps l.
std::uint64_t row_length(std::uint64_t n) {
  auto b = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(n))));
  return b + b % 2;
}

/// y - x modulo n.
std::uint64_t difference(std::uint64_t x, std::uint64_t y, std::uint64_t n) {
  return y >= x ? y - x : y + n - x;
}

/// Where the order of `values` stands in the enumeration of all orders (Lehmer code).
std::uint64_t rank_of(const std::vector<std::uint64_t>& values) {
  std::uint64_t rank = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto smaller = std::count_if(values.begin() + static_cast<std::ptrdiff_t>(i), values.end(),
                                       [&](std::uint64_t value) { return value < values[i]; });
    rank = rank * (values.size() - i) + static_cast<std::uint64_t>(smaller);
  }
  return rank;
}

}  // namespace

void Battery::judge(std::string test, const std::vector<std::uint32_t>& counts, const std::vector<double>& expected) {
  const std::array<std::size_t, 1> shape = {counts.size()};
  const xt::xtensor<double, 1> seen = xt::cast<double>(xt::adapt(counts, shape));
  const double total = xt::sum(seen)();
  xt::xtensor<double, 1> wanted = xt::ones<double>(shape) * (total / static_cast<double>(counts.size()));
  if (!expected.empty()) wanted = xt::adapt(expected, shape) * total;
  const double chi = xt::sum(xt::square(seen - wanted) / wanted)();
  findings_.push_back({std::move(test), normal_score(chi, static_cast<double>(counts.size() - 1))});
}

// All n! orders of a small domain are equally likely over keys: parity and every other bias of a few elements.
void Battery::all_orders(std::uint64_t n) {
  std::uint64_t orders = 1;
  for (std::uint64_t i = 2; i <= n; ++i) orders *= i;
  std::vector<std::uint32_t> counts(orders);
  std::vector<std::uint64_t> values(n);
  const std::uint64_t keys = std::max(samples(orders * 200), orders * 20);
  for (std::uint64_t key = 0; key < keys; ++key) {
    const Images images = family_(n, key, 0);
    for (std::uint64_t i = 0; i < n; ++i) values[i] = images(i);
    ++counts[rank_of(values)];
  }
  judge(fmt::format("all {} orders of {}", orders, n), counts);
}

// Over many keys: where one element goes, and the differences of pairs in one row, one column and across.
void Battery::small_domain(std::uint64_t n, bool by_epoch) {
  const std::uint64_t b = row_length(n);
  const std::array<std::uint64_t, 5> partners = {1, 2, b, b + 1, 2 * b};
  std::vector<std::uint32_t> places(n);
  std::vector<std::vector<std::uint32_t>> pairs(partners.size(), std::vector<std::uint32_t>(n - 1));
  for (std::uint64_t key = 0; key < samples(300'000); ++key) {
    const Images images = by_epoch ? family_(n, 5, key) : family_(n, key, 0);
    const std::uint64_t zero = images(0);
    ++places[zero];
    for (std::size_t i = 0; i < partners.size(); ++i) ++pairs[i][difference(zero, images(partners[i]), n) - 1];
  }
  const char* what = by_epoch ? "epochs" : "seeds";
  judge(fmt::format("place of 0 of {} over {}", n, what), places);
  for (std::size_t i = 0; i < partners.size(); ++i) {
    judge(fmt::format("pair difference (0, {}) of {} over {}", partners[i], n, what), pairs[i]);
  }
}

// The number of fixed points is Poisson with mean 1 (to 1/n!).
void Battery::fixed_points(std::uint64_t n) {
  std::vector<std::uint32_t> counts(6);
  for (std::uint64_t key = 0; key < samples(24'000); ++key) {
    const Images images = family_(n, key, 9);
    std::size_t fixed = 0;
    for (std::uint64_t i = 0; i < n; ++i) fixed += images(i) == i ? 1 : 0;
    ++counts[std::min<std::size_t>(fixed, counts.size() - 1)];
  }
  const double e = std::exp(-1.0);
  std::vector<double> expected = {e, e, e / 2, e / 6, e / 24};
  double rest = 1;
  for (const double share : expected) rest -= share;
  expected.push_back(rest);
  judge(fmt::format("fixed points of {}", n), counts, expected);
}

// image(i + lag) - image(i), in coarse and in fine bins: structure of rows and columns that survives the rounds.
void Battery::lags(std::uint64_t n) {
  const std::uint64_t b = row_length(n);
  const std::uint64_t fine = b <= 2048 ? b : 512;  // as many as residues, or so few that bins are equal in effect
  const std::array<std::uint64_t, 4> distances = {1, b, b + 1, 4 * b};
  std::vector<std::vector<std::uint32_t>> high(distances.size(), std::vector<std::uint32_t>(1024));
  std::vector<std::vector<std::uint32_t>> low(distances.size(), std::vector<std::uint32_t>(fine));
  std::mt19937_64 random(n);
  const std::uint64_t keys = 64;  // few samples of each, so that they do not meet
  for (std::uint64_t key = 0; key < keys; ++key) {
    const Images images = family_(n, key << 33, key);
    for (std::uint64_t sample = 0; sample < samples(1'600'000) / keys; ++sample) {
      const std::uint64_t i = random() % (n - 4 * b);
      const std::uint64_t image = images(i);
      for (std::size_t k = 0; k < distances.size(); ++k) {
        const std::uint64_t step = difference(image, images(i + distances[k]), n);
        ++high[k][static_cast<std::uint64_t>(static_cast<double>(step) / static_cast<double>(n) * 1024)];
        ++low[k][step % b * fine / b];
      }
    }
  }
  for (std::size_t k = 0; k < distances.size(); ++k) {
    judge(fmt::format("differences at lag {} of {}, coarse", distances[k], n), high[k]);
    judge(fmt::format("differences at lag {} of {}, fine", distances[k], n), low[k]);
  }
}

// (i, image(i)) falls evenly on a 32 x 32 grid; and so does the image of a run of neighbours.
void Battery::grid(std::uint64_t n) {
  std::vector<std::uint32_t> scattered(32 * 32);
  std::vector<std::uint32_t> run(1024);
  std::mt19937_64 random(n + 1);
  const std::uint64_t keys = 8;
  for (std::uint64_t key = 0; key < keys; ++key) {
    const Images images = family_(n, 1000 + key, 1);
    const auto part = [n](std::uint64_t value, std::uint64_t parts) {
      return static_cast<std::uint64_t>(static_cast<double>(value) / static_cast<double>(n) *
                                        static_cast<double>(parts));
    };
    const std::uint64_t count = samples(160'000) / keys;
    for (std::uint64_t sample = 0; sample < count; ++sample) {
      const std::uint64_t i = random() % n;
      ++scattered[part(i, 32) * 32 + part(images(i), 32)];
      ++run[part(images(sample), 1024)];
    }
  }
  judge(fmt::format("grid of {}", n), scattered);
  judge(fmt::format("images of a run of {}", n), run);
}

// The same index in two epochs that follow one another.
void Battery::epoch_against_epoch(std::uint64_t n) {
  std::vector<std::uint32_t> counts(64);
  std::mt19937_64 random(n + 2);
  for (std::uint64_t epoch = 0; epoch < 16; ++epoch) {
    const Images now = family_(n, 3, epoch);
    const Images next = family_(n, 3, epoch + 1);
    for (std::uint64_t sample = 0; sample < samples(64'000) / 16; ++sample) {
      const std::uint64_t i = random() % n;
      const auto step = static_cast<double>(difference(now(i), next(i), n));
      ++counts[static_cast<std::uint64_t>(step / static_cast<double>(n) * 64.0)];
    }
  }
  judge(fmt::format("epoch against epoch of {}", n), counts);
}

// One flipped bit of the seed, each of the 64, gives an unrelated permutation.
void Battery::seed_bits(std::uint64_t n) {
  std::vector<std::uint32_t> counts(64 * 16);
  std::mt19937_64 random(n + 3);
  for (unsigned bit = 0; bit < 64; ++bit) {
    const Images images = family_(n, 77, 0);
    const Images flipped = family_(n, 77 ^ (std::uint64_t{1} << bit), 0);
    for (std::uint64_t sample = 0; sample < 800; ++sample) {
      const std::uint64_t i = random() % n;
      const auto step = static_cast<double>(difference(images(i), flipped(i), n));
      ++counts[bit * 16 + static_cast<std::uint64_t>(step / static_cast<double>(n) * 16.0)];
    }
  }
  judge(fmt::format("seed bits of {}", n), counts);
}

std::vector<Finding> Battery::run() {
  findings_.clear();
  for (const std::uint64_t n : {2, 3, 4, 5, 6}) all_orders(n);
  for (const std::uint64_t n : {32, 65, 66, 81, 100}) small_domain(n, false);
  for (const std::uint64_t n : {33, 65, 100}) small_domain(n, true);
  for (const std::uint64_t n : {20, 100}) fixed_points(n);
  const std::vector<std::uint64_t> large = {(1ULL << 20) + 7, (1ULL << 24) - 3, (1ULL << 32) + 1, (1ULL << 40) + 7};
  for (const std::uint64_t n : large) {
    lags(n);
    grid(n);
    epoch_against_epoch(n);
    seed_bits(n);
  }
  return findings_;
}

std::vector<Finding> Battery::rejections(const std::vector<Finding>& findings) {
  std::vector<Finding> out;
  for (const Finding& finding : findings) {
    const double p = std::erfc(std::abs(finding.z) / std::sqrt(2.0));
    if (!(p * static_cast<double>(findings.size()) >= 1e-6)) out.push_back(finding);
  }
  return out;
}

}  // namespace penstock::shuffle
