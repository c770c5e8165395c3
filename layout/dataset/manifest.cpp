#include "layout/dataset/manifest.h"

#include "core/base/checked.h"
#include "core/base/json.h"
#include "layout/dataset/digest.h"
#include "layout/dataset/format.h"
#include "layout/dataset/sealed_json.h"
#include "layout/values/category_union.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace penstock::layout {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kMaxSmallJsonBytes = 64U << 10;
constexpr std::size_t kMaxTaskBytes = 8U << 20;
constexpr std::size_t kMaxFieldsBytes = 1U << 20;

// What a caller gave is no corruption of a file.
json parse_argument(std::string_view text, const std::string& what, std::size_t max_bytes) {
  try {
    return parse_json_strict(text, what, max_bytes);
  } catch (const Error& error) {
    raise(ErrorKind::InvalidArgument, "{}", error.what());
  }
}

std::string header(std::string_view name, const Format& format, bool has_features = false) {
  const bool is_second = format.has_columns() || has_features;
  return fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"byte_order\": \"little\",\n  \"mode\": \"{}\",\n"
      "  \"layout\": {},\n  \"fields\": {},\n  \"codec\": {},\n{}",
      name, is_second ? kColumnsFormatVersion : kFormatVersion, format.mode,
      format.layout.empty() ? "null" : "\"" + format.layout + "\"", format.schema.json(), format.codec_json,
      is_second ? fmt::format("  \"columns\": {},\n", column_types_json(format.columns)) : "");
}

// The names of each category, shard after shard, and of each shard's table the numbers of its names among them.
class Tables {
 public:
  Tables(const Format& format, const std::vector<ShardInfo>& shards) : unions_(format.columns.size()) {
    for (const ShardInfo& shard : shards) {
      for (std::size_t c = 0; c < unions_.size(); ++c) {
        if (format.columns[c].is_category) unions_[c].add(shard.columns->categories[c]);
      }
    }
  }

  // As the member "categories".
  [[nodiscard]] std::string text(const Format& format) const {
    ordered_json tables = ordered_json::object();
    for (std::size_t c = 0; c < unions_.size(); ++c) {
      if (format.columns[c].is_category) tables[format.columns[c].name] = unions_[c].names();
    }
    std::string text = tables.dump();
    if (text.size() > kMaxCategoriesBytes) {
      raise(ErrorKind::InvalidArgument,
            "the names of all categories have {} bytes, a manifest has room for {}: keep such texts as metadata, or as "
            "a column of numbers",
            with_commas(text.size()), with_commas(kMaxCategoriesBytes));
    }
    return text;
  }

  // The shard's table: how many of the names, if it is the first ones; else their numbers.
  [[nodiscard]] ordered_json numbers(std::size_t column, const CategoriesPtr& table) {
    const UnionCodes& codes = *unions_[column].add(table);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      if (codes[i] != static_cast<std::int32_t>(i)) return codes;
    }
    return codes.size();
  }

 private:
  std::vector<CategoryUnion> unions_;
};

// The members that dataset.json and shard.json have in common, in their order.
void put_counts(ordered_json& out, const Format& format, const ShardInfo& shard) {
  out["records"] = shard.records;
  out["spans"] = shard.spans;
  out["entries"] = shard.entries;
  ordered_json files = ordered_json::object();
  for (const ShardFile& file : shard_files(format, shard)) files[file.name] = file.bytes;
  out["files"] = std::move(files);
  ordered_json fields = ordered_json::object();
  const std::vector<Leaf>& leaves = format.schema.leaves();
  for (std::size_t i = 0; i < leaves.size(); ++i) fields[leaves[i].name] = hex_of(shard.field_digests.at(i));
  out["digests"]["fields"] = std::move(fields);
  out["digests"]["spans"] = shard.span_digest ? ordered_json(hex_of(*shard.span_digest)) : ordered_json(nullptr);
}

// What both say of a shard's columns; `names(c, table)` is what stands for a table of names, under `key`.
template <typename Names>
ordered_json columns_of(const Format& format, const ShardInfo& shard, const char* key, const Names& names) {
  ordered_json out;
  out["digests"] = ordered_json::object();
  out[key] = ordered_json::object();
  for (std::size_t c = 0; c < format.columns.size(); ++c) {
    const std::string& name = format.columns[c].name;
    out["digests"][name] = hex_of(shard.columns->digests.at(c));
    if (format.columns[c].is_category) out[key][name] = names(c, shard.columns->categories.at(c));
  }
  return out;
}

// Its name, or all of it where it has more to it than a name.
std::string codec_name(const std::string& codec_json) {
  const json codec = parse_json_strict(codec_json, "codec", kMaxSmallJsonBytes);
  const bool is_name = codec.is_object() && codec.size() == 1 && codec.contains("name") && codec["name"].is_string();
  return excerpt(is_name ? codec["name"].get<std::string>() : codec_json);
}

[[noreturn]] void refuse(const std::string& text) {
  raise(ErrorKind::InvalidArgument, "{}", text);
}

// Makes its text canonical.
void check_codec(Format& format) {
  if (format.codec_json.size() > kMaxSmallJsonBytes) refuse("a codec of more than 64 KiB");
  json codec = parse_argument(format.codec_json, "codec", kMaxSmallJsonBytes);
  const JsonGuard guard(codec);
  if (codec.is_null() == format.has_metadata())
    refuse(fmt::format("mode {} with codec {}", format.mode, excerpt(codec.dump())));
  if (!codec.is_null() && (!codec.is_object() || get_string(codec, "name", "codec").empty())) {
    refuse(fmt::format("codec {}, expected an object with a name", excerpt(codec.dump())));
  }
  format.codec_json = codec.dump();
  if (format.is_boundaries() && format.mode != kModeStream) {
    refuse(fmt::format("codec {} in mode {}: boundaries are those of records", codec.dump(), format.mode));
  }
}

}  // namespace

std::uint64_t Format::stored_record_bytes() const {
  return has_records() ? schema.record_bytes() + (is_ids() ? kIdBytes : 0) : 0;
}

void check_format(Format& format) {
  const bool stream = format.mode == kModeStream;
  if (!stream && format.mode != kModeTokens && format.mode != kModeOpaque) {
    refuse(fmt::format("mode \"{}\", expected stream, tokens or opaque", excerpt(format.mode)));
  }
  if (stream ? !format.is_compact() && !format.is_ids() : !format.layout.empty()) {
    refuse(fmt::format("layout \"{}\" for mode {}, expected {}", excerpt(format.layout), format.mode,
                       stream ? "compact or ids" : "none"));
  }
  if (format.has_records() == format.schema.leaves().empty()) {
    refuse(fmt::format("mode {} with fields {}", format.mode, excerpt(format.schema.json())));
  }
  if (format.schema.json().find(std::string("[\"") + kIdField + "\",") != std::string::npos) {
    refuse(fmt::format("a field called {}, which is the ids layout's own", kIdField));
  }
  // What readers accept of a header and of shard.json (layout/dataset/format.h) has room for this.
  if (format.schema.json().size() > kMaxFieldsBytes) refuse("fields whose description has more than 1 MiB");
  check_codec(format);
  if (format.has_columns() && !format.has_metadata()) {
    refuse(fmt::format("columns in mode {}, which has no documents: keep boundaries (metadata=\"boundaries\")",
                       format.mode));
  }
}

std::string format_difference(const Format& a, const Format& b) {
  if (a.mode != b.mode) return fmt::format("mode {} and {}", a.mode, b.mode);
  if (a.layout != b.layout) return fmt::format("layout {} and {}", a.layout, b.layout);
  if (a.schema.json() != b.schema.json())
    return fmt::format("fields {} and {}", excerpt(a.schema.json()), excerpt(b.schema.json()));
  if (a.codec_json != b.codec_json)
    return fmt::format("metadata codec {} and {}: write one of them again with the other's --metadata",
                       codec_name(a.codec_json), codec_name(b.codec_json));
  if (a.columns != b.columns) {
    const auto text = [](const Format& format) {
      return format.has_columns() ? excerpt(column_types_json(format.columns)) : std::string("none");
    };
    return fmt::format("columns {} and {}: `penstock annotate` adds, replaces and removes them", text(a), text(b));
  }
  return "";
}

ShardFiles shard_files(const Format& format, const ShardInfo& shard) {
  ShardFiles files;
  if (format.has_records()) {
    files.push_back({kStreamName, checked_mul(shard.records, format.stored_record_bytes(), kStreamName)});
  }
  if (!format.has_metadata()) return files;
  files.push_back({kDataName, shard.data_bytes});
  const std::uint64_t entry_bytes = format.is_compact() ? sizeof(CompactIndexEntry) : kOffsetIndexEntryBytes;
  files.push_back({kIndexName, checked_mul(checked_add(shard.entries, 1, kIndexName), entry_bytes, kIndexName)});
  if (format.is_compact()) files.push_back({kDirectoryName, directory_entries(shard.records) * kDirectoryEntryBytes});
  if (format.has_columns()) {
    files.push_back({kColumnsName, column_places(format.columns, *shard.columns, shard.entries).back().offset});
  }
  return files;
}

std::string fingerprint_of(const Format& format, const std::vector<ShardInfo>& shards) {
  Fingerprint fingerprint(format.mode, format.schema.json(), format.codec_json);
  for (const ShardInfo& shard : shards) fingerprint.add_shard(shard.records, shard.field_digests, shard.span_digest);
  return fingerprint.hex();
}

std::string write_manifest(const Manifest& manifest) {
  std::string text = header(kFormatName, manifest.format, manifest.features.has_value());
  Tables tables(manifest.format, manifest.shards);
  if (manifest.format.has_columns()) text += fmt::format("  \"categories\": {},\n", tables.text(manifest.format));
  if (manifest.features) {
    text += fmt::format("  \"features\": {{\"folder\": \"{}\", \"fingerprint\": \"{}\"}},\n", manifest.features->folder,
                        manifest.features->fingerprint);
  }
  text += fmt::format("  \"tokenizer\": {},\n  \"fingerprint\": \"{}\",\n  \"shards\": [", manifest.tokenizer_json,
                      fingerprint_of(manifest.format, manifest.shards));
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    ordered_json object;
    object["name"] = manifest.shards[i].name;
    put_counts(object, manifest.format, manifest.shards[i]);
    if (manifest.format.has_columns()) {
      object["values"] =
          columns_of(manifest.format, manifest.shards[i], "tables",
                     [&](std::size_t c, const CategoriesPtr& table) { return tables.numbers(c, table); });
    }
    text += (i == 0 ? "\n    " : ",\n    ") + object.dump();
  }
  return seal_json(text + "\n  ],");
}

std::string write_shard_manifest(const Format& format, const ShardInfo& shard) {
  std::string text = header(kShardFormatName, format);
  ordered_json counts;
  put_counts(counts, format, shard);
  if (format.has_columns()) {
    counts["values"] = columns_of(format, shard, "categories",
                                  [](std::size_t, const CategoriesPtr& table) { return ordered_json(*table); });
  }
  for (const auto& [key, value] : counts.items()) text += fmt::format("  \"{}\": {},\n", key, value.dump());
  return seal_json(text + fmt::format("  \"task\": {},", shard.task_json));
}

std::string check_tokenizer(std::string_view text) {
  const json tokenizer = parse_argument(text, "tokenizer", kMaxSmallJsonBytes);
  if (tokenizer.is_null()) return "null";
  bool fine = tokenizer.is_object();
  for (const json& value : tokenizer) fine = fine && (value.is_string() || value.is_number() || value.is_null());
  if (!fine) {
    raise(ErrorKind::InvalidArgument, "tokenizer {}, expected an object of strings and numbers",
          excerpt(tokenizer.dump()));
  }
  return tokenizer.dump();
}

std::string tokenizer_of_ids(const std::string& canonical) {
  json tokenizer = json::parse(canonical);
  if (tokenizer.is_object()) tokenizer.erase("engine");
  return tokenizer.dump();
}

std::string check_task(std::string_view text) {
  return parse_argument(text, "task", kMaxTaskBytes).dump();
}

}  // namespace penstock::layout
