#include "layout/dataset/digest.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace penstock::layout {

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
