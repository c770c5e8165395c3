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

}  // namespace

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

std::string Digest::hex() const {
  std::string text;
  for (const std::byte byte : bytes()) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
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

void Fingerprint::add_shard(std::uint64_t records, const std::vector<std::string>& field_digests,
                            const std::string& span_digest) {
  std::string line = fmt::format("shard {}", records);
  for (const std::string& digest : field_digests) line += " " + digest;
  digest_.update(line + " " + (span_digest.empty() ? "-" : span_digest) + "\n");
}

}  // namespace penstock::layout
