// Manifest: what dataset.json and shard.json say, as structs; parsing them and writing them.
//
// Everything parsed here is untrusted: names are single relative components, sizes are checked against counts without
// overflow, and the text's own CRC32C is checked first. Thread rule: values and pure functions; any thread.
#pragma once

#include "core/rows/schema.h"
#include "core/rows/value_type.h"
#include "layout/dataset/digest.h"
#include "layout/dataset/format.h"
#include "layout/values/column_types.h"

#include <boost/container/static_vector.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::layout {

/// What all shards of a dataset share.
struct Format {
  std::string mode;                 // kModeStream, kModeTokens, kModeOpaque
  std::string layout;               // "compact", "ids"; "" where the mode has no spans of records
  Schema schema;                    // the user's fields; empty for opaque
  std::string codec_json = "null";  // {"name":"json"}; "null" for tokens
  ValueTypes columns{};             // of each entry; none in version 1

  // string_views of constants: most comparisons end with the sizes.
  [[nodiscard]] bool has_records() const { return mode != std::string_view(kModeOpaque); }
  [[nodiscard]] bool has_metadata() const { return mode != std::string_view(kModeTokens); }
  [[nodiscard]] bool has_columns() const { return !columns.empty(); }
  [[nodiscard]] bool is_compact() const { return layout == std::string_view("compact"); }
  [[nodiscard]] bool is_ids() const { return layout == std::string_view("ids"); }
  /// Whether there are spans whose entries have no bytes. Of a format that check_format() passed.
  [[nodiscard]] bool is_boundaries() const { return codec_json == kBoundariesCodecJson; }
  /// Bytes from one stored record to the next: the fields, and the id in the ids layout; 0 for opaque.
  [[nodiscard]] std::uint64_t stored_record_bytes() const;
};

/// Makes the codec's text canonical. Throws InvalidArgument if the parts do not go together (mode, layout, fields,
/// codec, columns; a field called metadata_id).
void check_format(Format& format);

/// In words what differs between two formats, or "" if nothing that matters for their records and entries does.
std::string format_difference(const Format& a, const Format& b);

struct ShardInfo {
  std::string name;  // its folder; "" in shard.json, which does not say
  std::uint64_t records = 0;
  std::uint64_t spans = 0;
  std::uint64_t entries = 0;
  std::uint64_t data_bytes = 0;  // of metadata.bin; the other files' sizes follow from the counts
  FieldDigestList field_digests;
  std::optional<DigestBytes> span_digest;         // none without metadata
  std::shared_ptr<const ShardColumns> columns{};  // null without columns
  std::string task_json = "null";                 // shard.json only: what the writer says that this shard was made from
};

/// The dataset of what a dataset's records name by number, such as genes: a folder inside its own.
struct FeaturesInfo {
  std::string folder;
  std::string fingerprint;
};

struct Manifest {
  Format format;
  std::string tokenizer_json = "null";
  std::string fingerprint;  // what write_manifest() computed
  std::vector<ShardInfo> shards;
  std::optional<FeaturesInfo> features{};
};

struct ShardFile {
  const char* name = nullptr;  // kStreamName, …
  std::uint64_t bytes = 0;
};
using ShardFiles = boost::container::static_vector<ShardFile, 5>;

/// Name and size of each file of a shard, in the order stream, data, index, directory, columns. Throws Corruption on
/// overflow.
ShardFiles shard_files(const Format& format, const ShardInfo& shard);

/// The fingerprint of the format and the shards, as layout/dataset/digest.h says.
std::string fingerprint_of(const Format& format, const std::vector<ShardInfo>& shards);

/// The canonical text of dataset.json. Computes the fingerprint. Throws InvalidArgument for more names of categories
/// than a reader takes.
std::string write_manifest(const Manifest& manifest);

/// Bytes of capacity beyond its size that a text needs, or parsing it copies it first.
inline constexpr std::size_t kManifestTextPadding = 64;

/// Parses dataset.json. `what` names the file in messages. Throws Corruption; InvalidArgument for a version that this
/// penstock does not know.
Manifest parse_manifest(std::string text, const std::string& what);

/// The same for shard.json.
std::string write_shard_manifest(const Format& format, const ShardInfo& shard);
std::pair<Format, ShardInfo> parse_shard_manifest(std::string text, const std::string& what);

/// Throws InvalidArgument unless `json` is null or an object of strings, numbers and nulls of at most 64 KiB; returns
/// its canonical text.
std::string check_tokenizer(std::string_view json);

/// What a tokenizer says of its ids: a canonical text without the member "engine", which says who computed them.
std::string tokenizer_of_ids(const std::string& canonical);

/// Throws InvalidArgument unless `json` is JSON of at most 8 MiB; returns its canonical text.
std::string check_task(std::string_view json);

}  // namespace penstock::layout
