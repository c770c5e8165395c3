#include "core/base/crc32c.h"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace penstock {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

// Slicing by 8: table k carries a byte over k more zero bytes, so that eight look-ups take eight bytes at once.
constexpr Table make_table() {
  Table table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[0][i] = crc;
  }
  for (std::uint32_t i = 0; i < 256; ++i) {
    for (std::size_t k = 1; k < 8; ++k) table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xff];
  }
  return table;
}

constexpr Table kTable = make_table();

#if defined(__x86_64__)
bool has_instruction() noexcept {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

using States = std::array<std::uint64_t, 3>;

// Three stretches of `words` words that follow one another, each from a state of its own: the instruction takes three
// cycles and may begin in each.
__attribute__((target("sse4.2,crc32"))) States take_three(const std::byte* first, std::size_t words,
                                                          States states) noexcept {
  const std::byte* second = first + 8 * words;
  const std::byte* third = second + 8 * words;
  auto [a, b, c] = states;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word[3];
    std::memcpy(&word[0], first + 8 * i, 8);
    std::memcpy(&word[1], second + 8 * i, 8);
    std::memcpy(&word[2], third + 8 * i, 8);
    a = _mm_crc32_u64(a, word[0]);
    b = _mm_crc32_u64(b, word[1]);
    c = _mm_crc32_u64(c, word[2]);
  }
  return {a, b, c};
}

// A third of a block of 4 KiB, in whole words.
constexpr std::size_t kThird = 1360;
using Shift = std::array<std::array<std::uint32_t, 256>, 4>;

// What a state becomes over kThird bytes of zeros, by its bytes: a linear map, so a sum of what its bits become.
constexpr Shift make_shift() {
  std::array<std::uint32_t, 32> bits{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t state = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < kThird; ++i) state = (state >> 8) ^ kTable[0][state & 0xff];
    bits[bit] = state;
  }
  Shift shift{};
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::uint32_t value = 0; value < 256; ++value) {
      for (std::size_t bit = 0; bit < 8; ++bit)
        shift[byte][value] ^= (value >> bit & 1) != 0 ? bits[8 * byte + bit] : 0;
    }
  }
  return shift;
}

constexpr Shift kShift = make_shift();

std::uint64_t over_a_third(std::uint64_t state) noexcept {
  return kShift[0][state & 0xff] ^ kShift[1][state >> 8 & 0xff] ^ kShift[2][state >> 16 & 0xff] ^
         kShift[3][state >> 24 & 0xff];
}

__attribute__((target("sse4.2,crc32"))) std::uint32_t crc32c_sse42(std::span<const std::byte> bytes,
                                                                   std::uint32_t crc) noexcept {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t state = static_cast<std::uint32_t>(~crc);
  for (; left >= 3 * kThird; at += 3 * kThird, left -= 3 * kThird) {
    const auto [a, b, c] = take_three(at, kThird / 8, {state, 0, 0});
    state = over_a_third(over_a_third(a) ^ b) ^ c;
  }
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<std::uint32_t>(state);
  for (; left > 0; ++at, --left) narrow = _mm_crc32_u8(narrow, std::to_integer<std::uint8_t>(*at));
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(at[i]); };
  crc = ~crc;
  for (; left >= 8; at += 8, left -= 8) {
    crc ^= byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
    crc = kTable[7][crc & 0xff] ^ kTable[6][(crc >> 8) & 0xff] ^ kTable[5][(crc >> 16) & 0xff] ^ kTable[4][crc >> 24] ^
          kTable[3][byte(4)] ^ kTable[2][byte(5)] ^ kTable[1][byte(6)] ^ kTable[0][byte(7)];
  }
  for (; left > 0; ++at, --left) crc = (crc >> 8) ^ kTable[0][(crc ^ byte(0)) & 0xff];
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
#if defined(__x86_64__)
  if (has_instruction()) return crc32c_sse42(bytes, crc);
#endif
  return crc32c_portable(bytes, crc);
}

void crc32c_blocks(std::span<const std::byte> bytes, std::size_t block, std::vector<std::uint32_t>& out) {
  out.reserve(out.size() + bytes.size() / block + 1);
#if defined(__x86_64__)
  while (block % 8 == 0 && bytes.size() >= 3 * block && has_instruction()) {
    constexpr std::uint64_t kBegin = 0xffffffffU;
    for (const std::uint64_t state : take_three(bytes.data(), block / 8, {kBegin, kBegin, kBegin})) {
      out.push_back(~static_cast<std::uint32_t>(state));
    }
    bytes = bytes.subspan(3 * block);
  }
#endif
  while (!bytes.empty()) {
    const std::span<const std::byte> part = bytes.first(std::min(block, bytes.size()));
    out.push_back(crc32c(part));
    bytes = bytes.subspan(part.size());
  }
}

}  // namespace penstock
