#include "core/base/digest.h"

#include <cstring>

// Inline, so that the wheel needs no library beside it.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace penstock {
namespace {

DigestBytes canonical(XXH128_hash_t hash) {
  XXH128_canonical_t text;
  XXH128_canonicalFromHash(&text, hash);
  DigestBytes bytes;
  static_assert(sizeof(text.digest) == sizeof(bytes));
  std::memcpy(bytes.data(), text.digest, sizeof(bytes));
  return bytes;
}

constexpr std::string_view kDigits = "0123456789abcdef";

// What each character is worth as a hex digit; 255: none.
constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(255);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

}  // namespace

void append_hex(std::string& text, const DigestBytes& digest) {
  std::array<char, 2 * sizeof(DigestBytes)> digits;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto byte = std::to_integer<unsigned>(digest[i]);
    digits[2 * i] = kDigits[byte >> 4];
    digits[2 * i + 1] = kDigits[byte & 15];
  }
  text.append(digits.data(), digits.size());
}

std::string hex_of(const DigestBytes& digest) {
  std::string text;
  append_hex(text, digest);
  return text;
}

std::optional<DigestBytes> parse_digest(std::string_view hex) noexcept {
  DigestBytes digest;
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  unsigned seen = 0;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const unsigned high = kValues[static_cast<unsigned char>(hex[2 * i])];
    const unsigned low = kValues[static_cast<unsigned char>(hex[2 * i + 1])];
    seen |= high | low;
    digest[i] = static_cast<std::byte>(high << 4 | low);
  }
  if (seen > 15) return std::nullopt;
  return digest;
}

struct Digest::State {
  XXH3_state_t xxh;
};

Digest::Digest() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

void Digest::update(std::string_view text) {
  update(std::as_bytes(std::span(text)));
}

void Digest::update_u64(std::uint64_t value) {
  update(std::as_bytes(std::span(&value, 1)));
}

DigestBytes Digest::bytes() const {
  return canonical(XXH3_128bits_digest(&state_->xxh));
}

DigestBytes digest_of(std::span<const std::byte> bytes) {
  return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace penstock
