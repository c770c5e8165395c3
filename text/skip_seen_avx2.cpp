// Compiled for AVX2: nothing here may be a function that another file has too, which the linker could choose.
#include "text/skip_seen.h"

#include <immintrin.h>

namespace penstock::text {
namespace {

__m256i twice(const std::array<std::uint8_t, 16>& table) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table.data())));
}

// Bit i where byte i has all of these high bits.
std::uint32_t with_high_bits(__m256i block, int bits) {
  const __m256i wanted = _mm256_set1_epi8(static_cast<char>(bits));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_and_si256(block, wanted), wanted)));
}

// A loop over a mask of the starts of one length, so that no branch depends on the text.
template <unsigned more>
std::uint32_t unseen_codes(const std::uint8_t* bits, const std::uint8_t* at, std::uint32_t mask) {
  std::uint32_t seen = 1;
  for (; mask != 0; mask &= mask - 1) {
    const std::uint8_t* const lead = at + __builtin_ctz(mask);
    std::uint32_t code = lead[0] & (0x3fU >> more);
    for (unsigned i = 1; i <= more; ++i) code = code << 6 | (lead[i] & 0x3fU);
    seen &= static_cast<std::uint32_t>(bits[code >> 3]) >> (code & 7);
  }
  return ~seen & 1;
}

std::uint32_t unseen_pairs(const std::uint8_t* bits, const std::uint8_t* at, std::uint32_t mask) {
  std::uint32_t unseen = 0;
  for (; mask != 0; mask &= mask - 1) {
    const std::uint8_t* const first = at + __builtin_ctz(mask);
    const std::uint32_t pair = first[0] + 256U * first[1];
    unseen |= static_cast<std::uint32_t>(bits[pair >> 3]) >> (pair & 7);
  }
  return unseen & 1;
}

struct Loaded {
  __m256i unseen_ascii, low_firsts, high_firsts;
  // By the high half of a byte: its bit in a table for bytes below 0x80, and for those above.
  __m256i low_bits = _mm256_broadcastsi128_si256(_mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0));
  __m256i high_bits = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, -128));
};

bool has_news(const SeenTables& tables, const Loaded& loaded, const std::uint8_t* at) {
  const __m256i half = _mm256_set1_epi8(15);
  const __m256i zero = _mm256_setzero_si256();
  const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  const __m256i low = _mm256_and_si256(block, half);
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(block, 4), half);
  const __m256i low_bit = _mm256_shuffle_epi8(loaded.low_bits, high);
  const __m256i high_bit = _mm256_shuffle_epi8(loaded.high_bits, high);
  const __m256i ascii = _mm256_and_si256(_mm256_shuffle_epi8(loaded.unseen_ascii, low), low_bit);
  const __m256i firsts = _mm256_or_si256(_mm256_and_si256(_mm256_shuffle_epi8(loaded.low_firsts, low), low_bit),
                                         _mm256_and_si256(_mm256_shuffle_epi8(loaded.high_firsts, low), high_bit));
  const __m256i any = _mm256_or_si256(_mm256_or_si256(ascii, firsts), _mm256_and_si256(block, _mm256_set1_epi8(-128)));
  if (_mm256_testz_si256(any, any) != 0) return false;
  if (_mm256_testz_si256(ascii, ascii) == 0) return true;
  const auto first = ~static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(firsts, zero)));
  if (first != 0 && unseen_pairs(tables.pairs.data(), at, first) != 0) return true;
  const std::uint32_t two = with_high_bits(block, 0xc0);
  const std::uint32_t three = with_high_bits(block, 0xe0);
  const std::uint32_t four = with_high_bits(block, 0xf0);
  const std::uint8_t* const bits = tables.characters.data();
  return (unseen_codes<1>(bits, at, two & ~three) | unseen_codes<2>(bits, at, three & ~four) |
          unseen_codes<3>(bits, at, four)) != 0;
}

}  // namespace

const std::uint8_t* skip_seen_avx2(const SeenTables& tables, const std::uint8_t* at, const std::uint8_t* end) {
  const Loaded loaded{twice(tables.unseen_ascii), twice(tables.low_firsts), twice(tables.high_firsts)};
  for (; static_cast<std::size_t>(end - at) >= kSkipBlock + kSkipMargin; at += kSkipBlock) {
    if (has_news(tables, loaded, at)) break;
  }
  return at;
}

}  // namespace penstock::text
