#include "text/written.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

namespace penstock::text {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

// What stands behind the backslash for a byte that is escaped: 0 for one that is not, 'u' for one without a letter.
constexpr std::array<char, 256> make_escapes() {
  std::array<char, 256> escapes{};
  for (std::size_t byte = 0; byte < 0x20; ++byte) escapes[byte] = 'u';
  escapes['\b'] = 'b';
  escapes['\t'] = 't';
  escapes['\n'] = 'n';
  escapes['\f'] = 'f';
  escapes['\r'] = 'r';
  escapes['"'] = '"';
  escapes['\\'] = '\\';
  return escapes;
}
constexpr std::array<char, 256> kEscapes = make_escapes();

constexpr std::uint64_t kOnes = 0x0101010101010101;
constexpr std::uint64_t kHighs = 0x8080808080808080;

// Whether one of eight bytes is zero, and below 0x20: exact as a yes or no.
constexpr std::uint64_t zeros(std::uint64_t word) {
  return (word - kOnes) & ~word & kHighs;
}
constexpr std::uint64_t controls(std::uint64_t word) {
  return (word - kOnes * 0x20) & ~word & kHighs;
}

enum class Charset { Unicode, Ascii };

template <Charset charset>
bool has_escapes(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  std::uint64_t found = zeros(word ^ (kOnes * '"')) | zeros(word ^ (kOnes * '\\')) | controls(word);
  if (charset == Charset::Ascii) found |= (word & kHighs) | zeros(word ^ (kOnes * 0x7f));
  return found != 0;
}

template <Charset charset>
bool is_escaped(unsigned char byte) {
  return kEscapes[byte] != 0 || (charset == Charset::Ascii && byte >= 0x7f);
}

// The first of [begin, end) that is escaped, or end.
template <Charset charset>
const char* find_escaped(const char* begin, const char* end) {
  while (end - begin >= 8 && !has_escapes<charset>(begin)) begin += 8;
  while (begin != end && !is_escaped<charset>(static_cast<unsigned char>(*begin))) ++begin;
  return begin;
}

void put_unit(ByteVector& out, std::uint32_t unit) {
  const std::array<char, 6> text{'\\',
                                 'u',
                                 kHexDigits[unit >> 12 & 15],
                                 kHexDigits[unit >> 8 & 15],
                                 kHexDigits[unit >> 4 & 15],
                                 kHexDigits[unit & 15]};
  put_bytes(out, {text.data(), text.size()});
}

void put_escape(ByteVector& out, unsigned char byte) {
  const char letter = kEscapes[byte];
  if (letter == 'u' || byte == 0x7f) {
    put_unit(out, byte);
  } else {
    out.push_back('\\');
    out.push_back(static_cast<std::uint8_t>(letter));
  }
}

// One character beyond ASCII of valid UTF-8; returns the byte behind it.
const char* put_escaped_character(ByteVector& out, const char* at) {
  const auto lead = static_cast<unsigned char>(*at);
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  std::uint32_t code = lead & (0x3fu >> more);
  for (int i = 1; i <= more; ++i) code = code << 6 | (static_cast<unsigned char>(at[i]) & 0x3fu);
  if (code >= 0x10000) {
    put_unit(out, 0xd800 + ((code - 0x10000) >> 10));
    put_unit(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
  } else {
    put_unit(out, code);
  }
  return at + more + 1;
}

template <typename Integer>
void put_decimals(ByteVector& out, Integer value) {
  std::array<char, 24> text;
  const char* const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  put_bytes(out, {text.data(), static_cast<std::size_t>(end - text.data())});
}

// A byte that says the type, and a number in network order.
template <typename Number>
void put_typed(ByteVector& out, std::uint8_t type, Number number) {
  std::array<std::uint8_t, 1 + sizeof(Number)> bytes;
  bytes[0] = type;
  for (std::size_t i = 1; i <= sizeof(Number); ++i) {
    bytes[i] = static_cast<std::uint8_t>(number >> (8 * (sizeof(Number) - i)));
  }
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

void put_integer(ByteVector& out, std::int64_t value) {
  put_decimals(out, value);
}

void put_integer(ByteVector& out, std::uint64_t value) {
  put_decimals(out, value);
}

void put_float(ByteVector& out, double value) {
  std::array<char, 40> text;
  const char* const end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific).ptr;
  const std::string_view whole(text.data(), static_cast<std::size_t>(end - text.data()));
  const std::size_t mark = whole.find('e');
  int exponent = 0;
  std::from_chars(whole.data() + mark + (whole[mark + 1] == '+' ? 2 : 1), end, exponent);
  if (exponent < -4 || exponent >= 16) return put_bytes(out, whole);
  const std::size_t first = whole[0] == '-' ? 1 : 0;
  if (first == 1) out.push_back('-');
  std::array<char, 20> digits;  // at most 17
  std::size_t count = 0;
  for (const char each : whole.substr(first, mark - first)) {
    if (each != '.') digits[count++] = each;
  }
  const std::string_view shown(digits.data(), count);
  constexpr std::string_view kZeros = "0000000000000000";
  if (exponent < 0) {
    put_bytes(out, "0.");
    put_bytes(out, kZeros.substr(0, static_cast<std::size_t>(-exponent - 1)));
    return put_bytes(out, shown);
  }
  const auto whole_digits = static_cast<std::size_t>(exponent) + 1;
  put_bytes(out, shown.substr(0, whole_digits));
  if (count > whole_digits) {
    out.push_back('.');
    return put_bytes(out, shown.substr(whole_digits));
  }
  put_bytes(out, kZeros.substr(0, whole_digits - count));
  put_bytes(out, ".0");
}

void put_json_string(ByteVector& out, std::string_view utf8) {
  const char* begin = utf8.data();
  const char* const end = begin + utf8.size();
  out.push_back('"');
  while (true) {
    const char* const next = find_escaped<Charset::Unicode>(begin, end);
    put_bytes(out, {begin, static_cast<std::size_t>(next - begin)});
    if (next == end) break;
    put_escape(out, static_cast<unsigned char>(*next));
    begin = next + 1;
  }
  out.push_back('"');
}

void put_ascii_json_string(ByteVector& out, std::string_view utf8) {
  const char* begin = utf8.data();
  const char* const end = begin + utf8.size();
  out.push_back('"');
  while (true) {
    const char* const next = find_escaped<Charset::Ascii>(begin, end);
    put_bytes(out, {begin, static_cast<std::size_t>(next - begin)});
    if (next == end) break;
    if (static_cast<unsigned char>(*next) < 0x80) {
      put_escape(out, static_cast<unsigned char>(*next));
      begin = next + 1;
    } else {
      begin = put_escaped_character(out, next);
    }
  }
  out.push_back('"');
}

void put_packed(ByteVector& out, std::int64_t value) {
  if (value >= 0) return put_packed(out, static_cast<std::uint64_t>(value));
  if (value >= -32) {
    out.push_back(static_cast<std::uint8_t>(value));
  } else if (value >= INT8_MIN) {
    put_typed(out, 0xd0, static_cast<std::uint8_t>(value));
  } else if (value >= INT16_MIN) {
    put_typed(out, 0xd1, static_cast<std::uint16_t>(value));
  } else if (value >= INT32_MIN) {
    put_typed(out, 0xd2, static_cast<std::uint32_t>(value));
  } else {
    put_typed(out, 0xd3, static_cast<std::uint64_t>(value));
  }
}

void put_packed(ByteVector& out, std::uint64_t value) {
  if (value < 0x80) {
    out.push_back(static_cast<std::uint8_t>(value));
  } else if (value <= UINT8_MAX) {
    put_typed(out, 0xcc, static_cast<std::uint8_t>(value));
  } else if (value <= UINT16_MAX) {
    put_typed(out, 0xcd, static_cast<std::uint16_t>(value));
  } else if (value <= UINT32_MAX) {
    put_typed(out, 0xce, static_cast<std::uint32_t>(value));
  } else {
    put_typed(out, 0xcf, value);
  }
}

void put_packed(ByteVector& out, double value) {
  put_typed(out, 0xcb, std::bit_cast<std::uint64_t>(value));
}

void put_packed(ByteVector& out, std::string_view utf8) {
  const std::size_t size = utf8.size();
  if (size < 32) {
    out.push_back(static_cast<std::uint8_t>(0xa0 | size));
  } else if (size <= UINT8_MAX) {
    put_typed(out, 0xd9, static_cast<std::uint8_t>(size));
  } else if (size <= UINT16_MAX) {
    put_typed(out, 0xda, static_cast<std::uint16_t>(size));
  } else {
    put_typed(out, 0xdb, static_cast<std::uint32_t>(size));
  }
  put_bytes(out, utf8);
}

void put_packed_array_head(ByteVector& out, std::uint64_t size) {
  if (size < 16) {
    out.push_back(static_cast<std::uint8_t>(0x90 | size));
  } else if (size <= UINT16_MAX) {
    put_typed(out, 0xdc, static_cast<std::uint16_t>(size));
  } else {
    put_typed(out, 0xdd, static_cast<std::uint32_t>(size));
  }
}

void put_packed_map_head(ByteVector& out, std::uint64_t size) {
  if (size < 16) {
    out.push_back(static_cast<std::uint8_t>(0x80 | size));
  } else if (size <= UINT16_MAX) {
    put_typed(out, 0xde, static_cast<std::uint16_t>(size));
  } else {
    put_typed(out, 0xdf, static_cast<std::uint32_t>(size));
  }
}

}  // namespace penstock::text
