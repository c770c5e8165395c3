#include "layout/manifest.h"

#include "core/base/checked.h"
#include "core/base/json.h"
#include "layout/digest.h"
#include "layout/format.h"
#include "layout/sealed_json.h"

#include <nlohmann/json.hpp>

#include <set>

namespace penstock::layout {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kMaxSmallJsonBytes = 64U << 10;
constexpr std::size_t kMaxTaskBytes = 1U << 20;

template <typename... Arguments>
[[noreturn]] void corrupt(const std::string& what, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  raise(ErrorKind::Corruption, "{}: {}", what, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// What a caller gave is no corruption of a file.
json parse_argument(std::string_view text, const std::string& what, std::size_t max_bytes) {
  try {
    return parse_json_strict(text, what, max_bytes);
  } catch (const Error& error) {
    raise(ErrorKind::InvalidArgument, "{}", error.what());
  }
}

bool is_digest(const json& value) {
  return value.is_string() && value.get_ref<const std::string&>().size() == 32 &&
         value.get_ref<const std::string&>().find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string get_digest(const json& object, const std::string& key, const std::string& what) {
  const json& value = get_member(object, key, what);
  if (!is_digest(value)) corrupt(what, "digest \"{}\" is {}, expected 32 hex digits", key, value.dump());
  return value.get<std::string>();
}

// ---- writing

std::string header(std::string_view name, const Format& format) {
  return fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"byte_order\": \"little\",\n  \"mode\": \"{}\",\n"
      "  \"layout\": {},\n  \"fields\": {},\n  \"codec\": {},\n",
      name, kFormatVersion, format.mode, format.layout.empty() ? "null" : "\"" + format.layout + "\"",
      format.schema.json(), format.codec_json);
}

// The members that dataset.json and shard.json have in common, in their order.
void put_counts(ordered_json& out, const Format& format, const ShardInfo& shard) {
  out["records"] = shard.records;
  out["spans"] = shard.spans;
  out["entries"] = shard.entries;
  ordered_json files = ordered_json::object();
  for (const auto& [name, bytes] : shard_files(format, shard)) files[name] = bytes;
  out["files"] = std::move(files);
  ordered_json fields = ordered_json::object();
  const std::vector<Leaf>& leaves = format.schema.leaves();
  for (std::size_t i = 0; i < leaves.size(); ++i) fields[leaves[i].name] = shard.field_digests.at(i);
  out["digests"]["fields"] = std::move(fields);
  out["digests"]["spans"] = shard.span_digest.empty() ? ordered_json(nullptr) : ordered_json(shard.span_digest);
}

// ---- reading

// A single relative component: what a manifest may name inside its folder.
void check_name(const std::string& name, const std::string& what) {
  const bool fine =
      !name.empty() && name.size() <= 255 && name[0] != '.' &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == std::string::npos;
  if (!fine) corrupt(what, "shard name {}, expected a folder inside the dataset", json(name).dump());
}

Format parse_format(const json& root, std::string_view name, const std::string& what) {
  if (!root.is_object()) corrupt(what, "no JSON object");
  if (get_string(root, "format", what) != name) corrupt(what, "\"format\" is not \"{}\"", name);
  const std::uint64_t version = get_u64(root, "version", what);
  if (version != kFormatVersion) {
    raise(ErrorKind::InvalidArgument, "{}: format version {}, this penstock reads version {}: use a newer one", what,
          version, kFormatVersion);
  }
  if (get_string(root, "byte_order", what) != "little") corrupt(what, "\"byte_order\" is not \"little\"");
  Format format;
  format.mode = get_string(root, "mode", what);
  if (!get_member(root, "layout", what).is_null()) format.layout = get_string(root, "layout", what);
  const json& fields = get_member(root, "fields", what);
  try {
    if (!fields.is_array() || !fields.empty()) format.schema = Schema::parse(fields.dump());
    format.codec_json = get_member(root, "codec", what).dump();
    check_format(format);
  } catch (const Error& error) {
    corrupt(what, "{}", error.what());
  }
  return format;
}

void check_counts(const Format& format, const ShardInfo& shard, const std::string& what) {
  if (!format.has_records() && shard.records != 0) corrupt(what, "{} records in opaque documents", shard.records);
  if (!format.has_metadata() && (shard.spans != 0 || shard.entries != 0)) corrupt(what, "spans in a token stream");
  if (format.has_metadata() && !format.is_ids() && shard.spans != shard.entries) {
    corrupt(what, "{} spans and {} entries, expected as many", shard.spans, shard.entries);
  }
  if (format.is_compact() && shard.spans == 0 && shard.records != 0) corrupt(what, "records without a span");
  if (!format.is_ids()) return;
  if (shard.entries > (std::uint64_t{1} << 32)) corrupt(what, "{} entries, more than u32 ids can name", shard.entries);
  if (shard.spans > shard.records || (shard.records != 0 && (shard.spans == 0 || shard.entries == 0))) {
    corrupt(what, "{} spans and {} entries for {} records", shard.spans, shard.entries, shard.records);
  }
}

void check_files(const json& files, const Format& format, ShardInfo& shard, const std::string& what) {
  if (!files.is_object()) corrupt(what, "\"files\" is no object");
  if (format.has_metadata()) shard.data_bytes = get_u64(files, kDataName, what);
  const auto expected = [&] {
    try {
      return shard_files(format, shard);
    } catch (const Error& error) {
      corrupt(what, "{}", error.what());
    }
  }();
  for (const auto& [name, bytes] : expected) {
    const std::uint64_t said = get_u64(files, name.c_str(), what);
    if (said != bytes) {
      corrupt(what, "{} of {} bytes, its counts make {} bytes", name, with_commas(said), with_commas(bytes));
    }
  }
  if (files.size() != expected.size()) corrupt(what, "{} files, expected {}", files.size(), expected.size());
}

ShardInfo parse_shard(const json& object, const Format& format, const std::string& what) {
  ShardInfo shard;
  shard.records = get_u64(object, "records", what);
  shard.spans = get_u64(object, "spans", what);
  shard.entries = get_u64(object, "entries", what);
  check_counts(format, shard, what);
  check_files(get_member(object, "files", what), format, shard, what);
  const json& digests = get_member(object, "digests", what);
  if (!digests.is_object()) corrupt(what, "\"digests\" is no object");
  const json& fields = get_member(digests, "fields", what);
  if (!fields.is_object()) corrupt(what, "\"fields\" of \"digests\" is no object");
  for (const Leaf& leaf : format.schema.leaves()) shard.field_digests.push_back(get_digest(fields, leaf.name, what));
  if (format.has_metadata()) shard.span_digest = get_digest(digests, "spans", what);
  return shard;
}

json parse_sealed(std::string_view text, const std::string& what) {
  if (text.empty()) corrupt(what, "0 bytes");
  check_seal(text, what);
  return parse_json_strict(text, what, kMaxManifestBytes);
}

void parse_shards(const json& list, const std::string& what, Manifest& manifest) {
  if (!list.is_array() || list.empty()) corrupt(what, "\"shards\" is no list of shards");
  std::set<std::string> names;
  std::uint64_t total = 0;
  const std::string total_name = what + ": bytes of all files";
  manifest.shards.reserve(list.size());
  for (const json& object : list) {
    if (!object.is_object()) corrupt(what, "a shard that is no object");
    const std::string name = get_string(object, "name", what);
    check_name(name, what);
    if (!names.insert(name).second) corrupt(what, "shard {} is there twice", name);
    manifest.shards.push_back(parse_shard(object, manifest.format, what + ": shard " + name));
    ShardInfo& shard = manifest.shards.back();
    shard.name = name;
    for (const auto& file : shard_files(manifest.format, shard)) {
      total = checked_add(total, file.second, total_name.c_str());
    }
  }
}

}  // namespace

bool Format::has_records() const {
  return mode != kModeOpaque;
}
bool Format::has_metadata() const {
  return mode != kModeTokens;
}

std::uint64_t Format::stored_record_bytes() const {
  return has_records() ? schema.record_bytes() + (is_ids() ? kIdBytes : 0) : 0;
}

void check_format(Format& format) {
  const auto refuse = [](const std::string& text) { raise(ErrorKind::InvalidArgument, "{}", text); };
  const bool stream = format.mode == kModeStream;
  if (!stream && format.mode != kModeTokens && format.mode != kModeOpaque) {
    refuse(fmt::format("mode \"{}\", expected stream, tokens or opaque", format.mode));
  }
  if (stream ? !format.is_compact() && !format.is_ids() : !format.layout.empty()) {
    refuse(fmt::format("layout \"{}\" for mode {}, expected {}", format.layout, format.mode,
                       stream ? "compact or ids" : "none"));
  }
  if (format.has_records() == format.schema.leaves().empty()) {
    refuse(fmt::format("mode {} with fields {}", format.mode, format.schema.json()));
  }
  if (format.schema.json().find(std::string("[\"") + kIdField + "\",") != std::string::npos) {
    refuse(fmt::format("a field called {}, which is the ids layout's own", kIdField));
  }
  if (format.codec_json.size() > kMaxSmallJsonBytes) refuse("a codec of more than 64 KiB");
  const json codec = parse_argument(format.codec_json, "codec", kMaxSmallJsonBytes);
  if (codec.is_null() == format.has_metadata()) refuse(fmt::format("mode {} with codec {}", format.mode, codec.dump()));
  if (!codec.is_null() && (!codec.is_object() || get_string(codec, "name", "codec").empty())) {
    refuse(fmt::format("codec {}, expected an object with a name", codec.dump()));
  }
  format.codec_json = codec.dump();
}

std::string format_difference(const Format& a, const Format& b) {
  if (a.mode != b.mode) return fmt::format("mode {} and {}", a.mode, b.mode);
  if (a.layout != b.layout) return fmt::format("layout {} and {}", a.layout, b.layout);
  if (a.schema.json() != b.schema.json()) return fmt::format("fields {} and {}", a.schema.json(), b.schema.json());
  if (a.codec_json != b.codec_json) return fmt::format("metadata codec {} and {}", a.codec_json, b.codec_json);
  return "";
}

std::vector<std::pair<std::string, std::uint64_t>> shard_files(const Format& format, const ShardInfo& shard) {
  std::vector<std::pair<std::string, std::uint64_t>> files;
  if (format.has_records()) {
    files.emplace_back(kStreamName, checked_mul(shard.records, format.stored_record_bytes(), kStreamName));
  }
  if (!format.has_metadata()) return files;
  files.emplace_back(kDataName, shard.data_bytes);
  const std::uint64_t entry_bytes = format.is_compact() ? sizeof(CompactIndexEntry) : kOffsetIndexEntryBytes;
  files.emplace_back(kIndexName, checked_mul(checked_add(shard.entries, 1, kIndexName), entry_bytes, kIndexName));
  if (format.is_compact()) {
    files.emplace_back(kDirectoryName, directory_entries(shard.records) * kDirectoryEntryBytes);
  }
  return files;
}

std::string fingerprint_of(const Format& format, const std::vector<ShardInfo>& shards) {
  Fingerprint fingerprint(format.mode, format.schema.json(), format.codec_json);
  for (const ShardInfo& shard : shards) fingerprint.add_shard(shard.records, shard.field_digests, shard.span_digest);
  return fingerprint.hex();
}

std::string write_manifest(const Manifest& manifest) {
  std::string text = header(kFormatName, manifest.format);
  text += fmt::format("  \"tokenizer\": {},\n  \"fingerprint\": \"{}\",\n  \"shards\": [", manifest.tokenizer_json,
                      fingerprint_of(manifest.format, manifest.shards));
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    ordered_json object;
    object["name"] = manifest.shards[i].name;
    put_counts(object, manifest.format, manifest.shards[i]);
    text += (i == 0 ? "\n    " : ",\n    ") + object.dump();
  }
  return seal_json(text + "\n  ],");
}

Manifest parse_manifest(std::string_view text, const std::string& what) {
  const json root = parse_sealed(text, what);
  Manifest manifest;
  manifest.format = parse_format(root, kFormatName, what);
  manifest.tokenizer_json = get_member(root, "tokenizer", what).dump();
  manifest.fingerprint = get_digest(root, "fingerprint", what);
  parse_shards(get_member(root, "shards", what), what, manifest);
  const std::string fingerprint = fingerprint_of(manifest.format, manifest.shards);
  if (fingerprint != manifest.fingerprint) {
    corrupt(what, "fingerprint {}, its shards make {}", manifest.fingerprint, fingerprint);
  }
  return manifest;
}

std::string write_shard_manifest(const Format& format, const ShardInfo& shard) {
  std::string text = header(kShardFormatName, format);
  ordered_json counts;
  put_counts(counts, format, shard);
  for (const auto& [key, value] : counts.items()) text += fmt::format("  \"{}\": {},\n", key, value.dump());
  return seal_json(text + fmt::format("  \"task\": {},", shard.task_json));
}

std::pair<Format, ShardInfo> parse_shard_manifest(std::string_view text, const std::string& what) {
  const json root = parse_sealed(text, what);
  Format format = parse_format(root, kShardFormatName, what);
  ShardInfo shard = parse_shard(root, format, what);
  shard.task_json = get_member(root, "task", what).dump();
  return {std::move(format), std::move(shard)};
}

std::string check_tokenizer(std::string_view text) {
  const json tokenizer = parse_argument(text, "tokenizer", kMaxSmallJsonBytes);
  if (tokenizer.is_null()) return "null";
  bool fine = tokenizer.is_object();
  for (const json& value : tokenizer) fine = fine && (value.is_string() || value.is_number() || value.is_null());
  if (!fine) {
    raise(ErrorKind::InvalidArgument, "tokenizer {}, expected an object of strings and numbers", tokenizer.dump());
  }
  return tokenizer.dump();
}

std::string check_task(std::string_view text) {
  return parse_argument(text, "task", kMaxTaskBytes).dump();
}

}  // namespace penstock::layout
