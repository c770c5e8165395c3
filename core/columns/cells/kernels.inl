// The loops, compiled in several forms from one source; see kernels.h. PENSTOCK_CELL_KERNELS names the form's function.
// All else has internal linkage: the forms must not share code, since not every processor runs all of them.
#include "core/columns/cells/kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace penstock::cells {
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

#ifdef __AVX2__
// Eight records of a gene of 16 bits and a value of at most 16, each as one word: gene | value << 16. Of values of 8
// bits, four bytes behind the records are read too.
template <typename Value>
__m256i words_at(const std::byte* records) {
  if constexpr (sizeof(Value) == 2) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(records));
  } else {
    const __m256i bytes =
        _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(records + 12), reinterpret_cast<const __m128i*>(records));
    const __m256i order = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1,  //
                                           0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    return _mm256_shuffle_epi8(bytes, order);
  }
}

// As many records as whole vectors hold, from `first` (at least 1) on; returns where it ended.
template <typename Value>
std::uint64_t split_words(const std::byte* records, std::uint64_t first, std::uint64_t count, std::int32_t* genes,
                          float* values, bool& falls) {
  constexpr std::uint64_t kBytes = sizeof(std::uint16_t) + sizeof(Value);
  constexpr std::uint64_t kBehind = 8 + 2;  // records, so that nothing behind the last one is read
  const __m256i low = _mm256_set1_epi32(0xffff);
  __m256i rises = _mm256_set1_epi32(-1);
  std::uint64_t i = first;
  for (; i + kBehind <= count; i += 8) {
    const __m256i words = words_at<Value>(records + i * kBytes);
    const __m256i own = _mm256_and_si256(words, low);
    const __m256i before = _mm256_and_si256(words_at<Value>(records + (i - 1) * kBytes), low);
    rises = _mm256_and_si256(rises, _mm256_cmpgt_epi32(own, before));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(genes + i), own);
    _mm256_storeu_ps(values + i, _mm256_cvtepi32_ps(_mm256_srli_epi32(words, 16)));
  }
  falls |= _mm256_movemask_epi8(rises) != -1;
  return i;
}
#endif

template <typename Gene, typename Value>
bool split(const std::byte* __restrict records, std::uint64_t count, std::int32_t* __restrict genes,
           float* __restrict values) {
  constexpr std::uint64_t kBytes = sizeof(Gene) + sizeof(Value);
  bool falls = false;
  bool is_nan = false;
  std::int64_t last = -1;
  std::uint64_t i = 0;
  const auto one = [&] {
    Gene gene;
    Value value;
    std::memcpy(&gene, records + i * kBytes, sizeof gene);
    std::memcpy(&value, records + i * kBytes + sizeof gene, sizeof value);
    falls |= std::int64_t{gene} <= last;
    last = gene;
    if constexpr (std::is_floating_point_v<Value>) is_nan |= value != value;
    genes[i] = static_cast<std::int32_t>(gene);
    values[i] = static_cast<float>(value);
  };
#ifdef __AVX2__
  if constexpr (sizeof(Gene) == 2 && sizeof(Value) <= 2) {
    if (count > 0) {
      one();
      i = split_words<Value>(records, 1, count, genes, values, falls);
      last = genes[i - 1];
    }
  }
#endif
  for (; i < count; ++i) one();
  return !falls && !is_nan;
}

template <typename Gene, typename Value, bool kIsPlace, bool kClears>
std::int64_t scatter_as(const std::byte* records, std::uint64_t count, const std::int32_t* places, std::uint64_t mapped,
                        float* row) {
  bool fine = true;
  std::int64_t last = -1;
  for (std::uint64_t i = 0; i < count; ++i, records += sizeof(Gene) + sizeof(Value)) {
    Gene gene;
    Value value;
    std::memcpy(&gene, records, sizeof gene);
    std::memcpy(&value, records + sizeof gene, sizeof value);
    fine &= std::int64_t{gene} > last;
    last = gene;
    if constexpr (std::is_floating_point_v<Value>) fine &= value == value;
    if (gene >= mapped) continue;
    const float written = kClears ? 0.0F : static_cast<float>(value);
    if constexpr (kIsPlace) {
      row[gene] = written;
    } else if (const std::int32_t place = places[gene]; place >= 0) {
      row[place] = written;
    }
  }
  return fine ? last : -2;
}

template <typename Gene, typename Value, bool kClears>
std::int64_t scatter(const std::byte* records, std::uint64_t count, const std::int32_t* places, std::uint64_t mapped,
                     float* row) {
  return places == nullptr ? scatter_as<Gene, Value, true, kClears>(records, count, places, mapped, row)
                           : scatter_as<Gene, Value, false, kClears>(records, count, places, mapped, row);
}

template <typename Gene, typename Value>
constexpr PackedRuns kPacked{&split<Gene, Value>, &scatter<Gene, Value, false>, &scatter<Gene, Value, true>};

void stream(const std::byte* from, std::uint64_t bytes, std::byte* to) {
#ifdef __AVX2__
  constexpr std::uint64_t kVector = sizeof(__m256i);
  const std::uint64_t before = (kVector - reinterpret_cast<std::uintptr_t>(to) % kVector) % kVector;
  const std::uint64_t head = before < bytes ? before : bytes;
  std::memcpy(to, from, head);
  std::uint64_t at = head;
  for (; at + kVector <= bytes; at += kVector) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at)));
  }
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();  // such stores are in no order with what tells other threads that they are done
#else
  std::memcpy(to, from, bytes);
#endif
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
  const double odd =
      z * (6.666666666666735130e-01 +
           w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  const double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  const double rest = odd + even;
  return s * (half_square + rest) + (lost + k * 1.90821492927058770002e-10) - half_square + f +
         k * 6.93147180369123816490e-01;
}

double largest(const double* values, std::uint64_t count) {
  double found = 0;
  for (std::uint64_t i = 0; i < count; ++i) found = values[i] > found ? values[i] : found;
  return found;
}

void look_up(double* values, std::uint64_t count, const double* table) {
  for (std::uint64_t i = 0; i < count; ++i) values[i] = table[static_cast<std::int32_t>(values[i])];
}

void log1p(double* values, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) values[i] = log1p_of(values[i]);
}

std::uint64_t select(std::uint32_t* genes, double* values, std::uint64_t count, const std::int32_t* places,
                     std::uint64_t mapped) {
  std::uint64_t kept = 0;
  if (count > 0 && genes[count - 1] >= mapped) {
    count = static_cast<std::uint64_t>(std::lower_bound(genes, genes + count, mapped) - genes);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int32_t place = places[genes[i]];
    genes[kept] = static_cast<std::uint32_t>(place);
    values[kept] = values[i];
    kept += place >= 0 ? 1 : 0;
  }
  return kept;
}

}  // namespace

const Kernels& PENSTOCK_CELL_KERNELS() {
  static constexpr Kernels kAll{{kPacked<std::uint16_t, std::uint8_t>, kPacked<std::uint16_t, std::uint16_t>,
                                 kPacked<std::uint16_t, std::uint32_t>, kPacked<std::uint16_t, float>},
                                {kPacked<std::uint32_t, std::uint8_t>, kPacked<std::uint32_t, std::uint16_t>,
                                 kPacked<std::uint32_t, std::uint32_t>, kPacked<std::uint32_t, float>},
                                &stream,
                                &ascends<std::uint32_t>,
                                &ascends<std::int32_t>,
                                &ascends<std::int64_t>,
                                &has_no_nan<double>,
                                &has_no_nan<float>,
                                &all_finite,
                                &sum,
                                &divide,
                                &divide_each,
                                &log1p,
                                &largest,
                                &look_up,
                                &select};
  return kAll;
}

}  // namespace penstock::cells
