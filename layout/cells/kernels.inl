// The loops, compiled in several forms from one source; see kernels.h. PENSTOCK_CELL_KERNELS names the form's function.
// All else has internal linkage: the forms must not share code, since not every processor runs all of them.
#include "layout/cells/kernels.h"

#include <array>
#include <bit>
#include <cmath>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kLanes = 8;

template <typename T>
bool ascends(const T* genes, std::uint64_t count) {
  bool falls = false;
  for (std::uint64_t i = 1; i < count; ++i) falls |= genes[i] <= genes[i - 1];
  return !falls;
}

template <typename T>
bool has_no_nan(const T* values, std::uint64_t count) {
  bool found = false;
  for (std::uint64_t i = 0; i < count; ++i) found |= values[i] != values[i];
  return !found;
}

bool all_finite(const double* values, std::uint64_t count, bool positive) {
  constexpr std::uint64_t kInfinity = 0x7ff0'0000'0000'0000U;
  bool found = false;
  if (positive) {
    // Of values from 0 on, the bits are ordered as the values; all others are above infinity's, but -0.
    for (std::uint64_t i = 0; i < count; ++i) found |= std::bit_cast<std::uint64_t>(values[i] + 0.0) >= kInfinity;
  } else {
    for (std::uint64_t i = 0; i < count; ++i) found |= !(values[i] - values[i] == 0);
  }
  return !found;
}

double sum(const double* values, std::uint64_t count) {
  std::array<double, kLanes> sums{};
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) sums[lane] += values[i + lane];
  }
  for (std::uint64_t lane = 0; i + lane < count; ++lane) sums[lane] += values[i + lane];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

void divide(double* values, std::uint64_t count, double divisor) {
  for (std::uint64_t i = 0; i < count; ++i) values[i] /= divisor;
}

void divide_each(double* values, const double* divisors, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) values[i] /= divisors[i];
}

// FreeBSD's s_log1p.c: log(u) for u = 1 + x rounded, by u = 2^k (1 + f), and what rounding u lost.
double log1p_of(double x) {
  constexpr std::uint64_t kOne = std::uint64_t{0x3ff00000} << 32;
  constexpr std::uint64_t kRootHalf = std::uint64_t{0x3fe6a09e} << 32;
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  constexpr double kMagic = 0x1p52;  // its last 52 bits are an integer
  const double u = 1 + x;
  const double lost = (x < 1 ? x - (u - 1) : 1 - (u - x)) / u;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(u) + (kOne - kRootHalf);
  const double biased = std::bit_cast<double>((bits >> 52) | std::bit_cast<std::uint64_t>(kMagic)) - kMagic;
  const double k = biased - 1023;
  const double f = std::bit_cast<double>((bits & kFraction) + kRootHalf) - 1;
  const double half_square = 0.5 * f * f;
  const double s = f / (2 + f);
  const double z = s * s;
  const double w = z * z;
  const double odd = z * (6.666666666666735130e-01 +
                          w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double rest = odd + even;
  return s * (half_square + rest) + (lost + k * 1.90821492927058770002e-10) - half_square + f +
         k * 6.93147180369123816490e-01;
}

void log1p(double* values, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) values[i] = log1p_of(values[i]);
}

// `count` is at most that of the genes below `mapped`.
std::uint64_t select(std::uint32_t* genes, double* values, std::uint64_t count, const std::int32_t* places,
                     std::uint64_t mapped) {
  std::uint64_t kept = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (genes[i] >= mapped) continue;
    const std::int32_t place = places[genes[i]];
    genes[kept] = static_cast<std::uint32_t>(place);
    values[kept] = values[i];
    kept += place >= 0 ? 1 : 0;
  }
  return kept;
}

}  // namespace

const Kernels& PENSTOCK_CELL_KERNELS() {
  static constexpr Kernels kAll{&ascends<std::uint32_t>,
                                &ascends<std::int32_t>,
                                &ascends<std::int64_t>,
                                &has_no_nan<double>,
                                &has_no_nan<float>,
                                &all_finite,
                                &sum,
                                &divide,
                                &divide_each,
                                &log1p,
                                &select};
  return kAll;
}

}  // namespace penstock::layout
