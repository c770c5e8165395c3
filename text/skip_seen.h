// The way over text whose characters and tokens were all seen: most of what Unseen does. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock::text {

constexpr std::size_t kSkipBlock = 32;
constexpr std::size_t kSkipMargin = 3;  // bytes that are read behind a block: the rest of a character

/// The kinds of things that a byte begins.
enum SeenClass : std::uint8_t {
  kUnseenAscii = 1,  // a character of one byte that was not seen
  kTokenFirst = 2,   // a token that was not seen
  kLead = 4,         // a character of several bytes
};

/// Bytes that were not seen, in the forms in which a block is compared with it.
struct SeenTables {
  std::array<std::uint8_t, 256> classes{};
  /// Of the bytes whose low half is i: bit k is set for the one whose high half is k; of tokens' first bytes below 0x80
  /// and above.
  std::array<std::uint8_t, 16> unseen_ascii{};
  std::array<std::uint8_t, 16> low_firsts{};
  std::array<std::uint8_t, 16> high_firsts{};
  /// Bit `first + 256 * second` is set where a token that was not seen may begin with these two bytes.
  std::array<std::uint8_t, 65536 / 8> pairs{};
  /// Bit i is set where code point i was seen. There is room for all that four bytes can say.
  std::array<std::uint8_t, (1 << 21) / 8> characters{};
};

/// The first of the blocks that begin at `at` in which an unseen character begins, or the first two bytes of an unseen
/// token; where there is none, the first place behind which there is no whole block with its margin before `end`.
using SkipSeen = const std::uint8_t* (*)(const SeenTables& tables, const std::uint8_t* at, const std::uint8_t* end);
const std::uint8_t* skip_seen_generic(const SeenTables& tables, const std::uint8_t* at, const std::uint8_t* end);
#ifdef PENSTOCK_X86_KERNELS
const std::uint8_t* skip_seen_avx2(const SeenTables& tables, const std::uint8_t* at, const std::uint8_t* end);
#endif

/// The fastest that this processor has.
SkipSeen best_skip_seen() noexcept;

inline bool has_bit(const std::uint8_t* bits, std::uint32_t i) noexcept {
  return (bits[i >> 3] >> (i & 7) & 1) != 0;
}

/// The code point of UTF-8 whose `more` + 1 bytes begin at `at`.
template <unsigned more>
std::uint32_t code_at(const std::uint8_t* at) noexcept {
  std::uint32_t code = at[0] & (0x3fU >> more);
  for (unsigned i = 1; i <= more; ++i) code = code << 6 | (at[i] & 0x3fU);
  return code;
}

}  // namespace penstock::text
