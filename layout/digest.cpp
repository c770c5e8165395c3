#include "layout/digest.h"

#include <fmt/format.h>

#include <cstring>

// Inline, so that the wheel needs no library beside it.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace penstock::layout {
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

void append_hex(std::string& text, const DigestBytes& digest) {
  std::array<char, 2 * sizeof(DigestBytes)> digits;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto byte = std::to_integer<unsigned>(digest[i]);
    digits[2 * i] = kDigits[byte >> 4];
    digits[2 * i + 1] = kDigits[byte & 15];
  }
  text.append(digits.data(), digits.size());
}

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

void SpanDigest::add(std::uint64_t records, std::uint64_t entry_bytes, const DigestBytes& entry) {
  std::array<std::byte, 32> packed;
  std::memcpy(packed.data(), &records, 8);
  std::memcpy(packed.data() + 8, &entry_bytes, 8);
  std::memcpy(packed.data() + 16, entry.data(), 16);
  digest_.update(packed);
}

Fingerprint::Fingerprint(std::string_view mode, std::string_view fields_json, std::string_view codec_json) {
  digest_.update(fmt::format("penstock fingerprint 1\nmode {}\nfields {}\ncodec {}\n", mode, fields_json, codec_json));
}

void Fingerprint::add_shard(std::uint64_t records, const FieldDigestList& field_digests,
                            const std::optional<DigestBytes>& span_digest) {
  lines_.assign("shard ").append(fmt::format_int(records).c_str());
  for (const DigestBytes& digest : field_digests) append_hex(lines_ += ' ', digest);
  lines_ += ' ';
  if (span_digest) append_hex(lines_, *span_digest);
  digest_.update(lines_.append(span_digest ? "\n" : "-\n"));
}

}  // namespace penstock::layout
