// Digest: XXH3-128, the check value of a shard's content, and the fingerprint made of such digests.
//
// A digest tells content apart by accident, not by malice. Thread rule: one thread at a time.
#pragma once

#include <boost/container/small_vector.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::layout {

/// The 16 bytes of a digest, most significant first (XXH128_canonical_t).
using DigestBytes = std::array<std::byte, 16>;

/// Digests of a shard's fields, in the order of the schema's leaves. One field, as most datasets have, takes no memory
/// beside the shard.
using FieldDigestList = boost::container::small_vector<DigestBytes, 1>;

/// 32 lower-case hex digits; and what such a text says, nullopt for any other text.
std::string hex_of(const DigestBytes& digest);
std::optional<DigestBytes> parse_digest(std::string_view hex) noexcept;

/// XXH3-128 of what update() was given, end to end.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  /// A number as 8 little-endian bytes.
  void update_u64(std::uint64_t value);

  [[nodiscard]] DigestBytes bytes() const;
  [[nodiscard]] std::string hex() const { return hex_of(bytes()); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// XXH3-128 of `bytes` at once.
DigestBytes digest_of(std::span<const std::byte> bytes);

/// The digest of span lengths and entry bytes: span by span (records u64, bytes u64, digest of the entry's bytes).
class SpanDigest {
 public:
  void add(std::uint64_t records, std::uint64_t entry_bytes, const DigestBytes& entry);
  [[nodiscard]] DigestBytes bytes() const { return digest_.bytes(); }

 private:
  Digest digest_;
};

/// The fingerprint of a dataset of ours: XXH3-128 over a text that docs/format.md gives, of mode, fields, codec and,
/// shard by shard in order, record count and digests. Layout, names, tokenizer and versions are not in it.
class Fingerprint {
 public:
  Fingerprint(std::string_view mode, std::string_view fields_json, std::string_view codec_json);
  /// `field_digests` in the order of the schema's leaves; no `span_digest` where there is no metadata.
  void add_shard(std::uint64_t records, const FieldDigestList& field_digests,
                 const std::optional<DigestBytes>& span_digest);
  [[nodiscard]] std::string hex() const { return digest_.hex(); }

 private:
  Digest digest_;
  std::string lines_;  // of the shard being added; kept for its memory
};

}  // namespace penstock::layout
