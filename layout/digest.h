// Digest: XXH3-128, the check value of a shard's content, and the fingerprint made of such digests.
//
// A digest tells content apart by accident, not by malice. Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::layout {

/// The 16 bytes of a digest, most significant first (XXH128_canonical_t).
using DigestBytes = std::array<std::byte, 16>;

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
  /// 32 lower-case hex digits.
  [[nodiscard]] std::string hex() const;

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
  [[nodiscard]] std::string hex() const { return digest_.hex(); }

 private:
  Digest digest_;
};

/// The fingerprint of a dataset of ours: XXH3-128 over a text that docs/format.md gives, of mode, fields, codec and,
/// shard by shard in order, record count and digests. Layout, names, tokenizer and versions are not in it.
class Fingerprint {
 public:
  Fingerprint(std::string_view mode, std::string_view fields_json, std::string_view codec_json);
  /// `field_digests` in the order of the schema's leaves; `span_digest` is "" where there is no metadata.
  void add_shard(std::uint64_t records, const std::vector<std::string>& field_digests, const std::string& span_digest);
  [[nodiscard]] std::string hex() const { return digest_.hex(); }

 private:
  Digest digest_;
};

}  // namespace penstock::layout
