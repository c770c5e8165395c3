// What of a shard's content is hashed, and the fingerprint made of such digests. Thread rule: one thread at a time.
#pragma once

#include "core/base/digest.h"

#include <boost/container/small_vector.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::layout {

/// Digests of a shard's fields, in the order of the schema's leaves. One field, as most datasets have, takes no memory
/// beside the shard.
using FieldDigestList = boost::container::small_vector<DigestBytes, 1>;

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
