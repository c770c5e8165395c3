// Reading dataset.json and shard.json. Of a large dataset.json nearly all is the list of shards, which simdjson walks
// without building values; what is left is parsed by parse_json_strict. The two refuse the same texts: whatever is not
// as write_manifest() writes it (other members, another order, a value of another type) has the whole text parsed
// strictly first (docs/decisions.md, "Two JSON parsers").
#include "core/base/checked.h"
#include "core/base/json.h"
#include "layout/dataset/digest.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"
#include "layout/dataset/sealed_json.h"
#include "layout/reading/huge_pages.h"

#include <simdjson.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

namespace penstock::layout {
namespace {

using nlohmann::json;
namespace ondemand = simdjson::ondemand;

static_assert(kManifestTextPadding >= simdjson::SIMDJSON_PADDING);

template <typename... Arguments>
[[noreturn]] void corrupt(const std::string& what, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  raise(ErrorKind::Corruption, "{}: {}", what, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// The whole text, which is checked strictly at most once, and only when something in it is out of the ordinary.
class Text {
 public:
  Text(std::string_view whole, const std::string& what) : whole_(whole), what_(what) {}

  [[nodiscard]] const std::string& what() const noexcept { return what_; }
  void check_strictly() {
    if (!checked_) check_json_strict(whole_, what_, kMaxManifestBytes);
    checked_ = true;
  }
  // The value of a token of it: for what is not of the expected type.
  json value_of(std::string_view token, const std::string& what) {
    check_strictly();
    return parse_json_strict(token, what);
  }

 private:
  std::string_view whole_;
  const std::string& what_;
  bool checked_ = false;
};

// A scalar's text, or the first character of a list or an object; empty: there is no such member.
using Token = std::string_view;
using Members = boost::container::small_vector<std::pair<std::string_view, Token>, 4>;

// A shard's members as they stand in the text, nothing checked but the grammar.
struct ShardText {
  Token name, records, spans, entries, files, digests, fields, span_digest, columns;
  Members file_bytes;      // of "files", as it is an object
  Members field_digests;   // of "fields", as it is an object
  Members column_digests;  // of "values" …
  Members column_tables;   // … where a list is there with all of its values
};

std::string_view trimmed(std::string_view token) {
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
  return token;
}

Token token_of(ondemand::value value) {
  return trimmed(value.raw_json_token());
}

// A key's characters. One with escapes may be one that is looked for; no writer of ours makes one.
std::string_view key_of(ondemand::field& field, Text& text) {
  const char* const begin = field.key().raw();
  const char* end = begin;  // keys are short, and simdjson has seen that they end
  for (; *end != '"'; ++end) {
    if (*end != '\\') continue;
    text.check_strictly();
    return field.unescaped_key();
  }
  return {begin, static_cast<std::size_t>(end - begin)};
}

// Notes `token` as that of a member. A second one is refused by the strict parser.
void put(Token& place, Token token, Text& text) {
  if (!place.empty()) text.check_strictly();
  place = token;
}

bool is_object(Token token) {
  return token.starts_with('{');
}

void walk_members(ondemand::value value, Members& out, Text& text) {
  for (ondemand::field field : value.get_object()) {
    if (out.size() == kMaxJsonOpenKeys) {
      corrupt(text.what(), "a list of files or digests with more than {} members", with_commas(kMaxJsonOpenKeys));
    }
    const std::string_view key = key_of(field, text);
    out.emplace_back(key, token_of(field.value()));
  }
}

void walk_digests(ondemand::value value, ShardText& out, Text& text) {
  for (ondemand::field field : value.get_object()) {
    const std::string_view key = key_of(field, text);
    const Token token = token_of(field.value());
    if (key == "fields") {
      put(out.fields, token, text);
      if (is_object(token)) walk_members(field.value(), out.field_digests, text);
    } else if (key == "spans") {
      put(out.span_digest, token, text);
    } else {
      text.check_strictly();
    }
  }
}

// Numbers, and lists of them as they stand in the text.
void walk_tables(ondemand::value value, Members& out, Text& text) {
  for (ondemand::field field : value.get_object()) {
    const std::string_view key = key_of(field, text);
    ondemand::value member = field.value();
    const Token token = token_of(member);
    const bool is_list = token.starts_with('[');
    out.emplace_back(key, is_list ? trimmed(ondemand::array(member.get_array()).raw_json().value()) : token);
  }
}

void walk_columns(ondemand::value value, ShardText& out, Text& text) {
  for (ondemand::field field : value.get_object()) {
    const std::string_view key = key_of(field, text);
    ondemand::value member = field.value();
    if (key != "digests" && key != "tables") {
      text.check_strictly();
    } else if (is_object(token_of(member))) {
      Members& members = key == "digests" ? out.column_digests : out.column_tables;
      if (!members.empty()) text.check_strictly();  // a second one
      if (key == "digests") {
        walk_members(member, members, text);
      } else {
        walk_tables(member, members, text);
      }
    }
  }
}

void walk_member(std::string_view key, ondemand::value value, ShardText& out, Text& text) {
  const Token token = token_of(value);
  if (key == "name") {
    put(out.name, token, text);
  } else if (key == "records") {
    put(out.records, token, text);
  } else if (key == "spans") {
    put(out.spans, token, text);
  } else if (key == "entries") {
    put(out.entries, token, text);
  } else if (key == "files") {
    put(out.files, token, text);
    if (is_object(token)) walk_members(value, out.file_bytes, text);
  } else if (key == "digests") {
    put(out.digests, token, text);
    if (is_object(token)) walk_digests(value, out, text);
  } else if (key == "values") {
    put(out.columns, token, text);
    if (is_object(token)) walk_columns(value, out, text);
  } else {
    text.check_strictly();  // a member of a later version
  }
}

void walk_shard(ondemand::object object, ShardText& out, Text& text) {
  for (ondemand::field field : object) {
    const std::string_view key = key_of(field, text);
    walk_member(key, field.value(), out, text);
  }
}

// ---- what the tokens say. `what` names the shard; it is made only for a message.

template <typename What>
Token there(Token token, std::string_view key, const What& what) {
  if (token.empty()) corrupt(what(), "\"{}\" is missing", key);
  return token;
}

template <typename What>
std::uint64_t read_u64(Token token, std::string_view key, Text& text, const What& what) {
  there(token, key, what);
  std::uint64_t value = 0;
  const bool plain = token.size() == 1 || token[0] != '0';
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (plain && error == std::errc() && end == token.data() + token.size()) return value;
  return as_u64(text.value_of(token, what()), fmt::format("{}: \"{}\"", what(), key));
}

template <typename What>
DigestBytes read_digest(Token token, std::string_view key, Text& text, const What& what) {
  there(token, key, what);
  if (token.size() > 2 && token.front() == '"' && token.back() == '"') {
    if (const auto digest = parse_digest(token.substr(1, token.size() - 2))) return *digest;
  }
  const json value = text.value_of(token, what());
  if (value.is_string()) {  // of escapes
    if (const auto digest = parse_digest(value.template get_ref<const std::string&>())) return *digest;
  }
  corrupt(what(), "digest \"{}\" is {}, expected 32 hex digits", excerpt(key), excerpt(value.dump()));
}

// Member `key` of an object that usually has it at `place`. All others are looked at only after the strict parser saw
// that no key is there twice.
Token find(const Members& members, std::size_t place, std::string_view key, Text& text) {
  if (place < members.size() && members[place].first == key) return members[place].second;
  text.check_strictly();
  for (const auto& [name, token] : members) {
    if (name == key) return token;
  }
  return {};
}

// A single relative component: what a manifest may name inside its folder.
void check_name(const std::string& name, const std::string& what, const char* kind = "shard") {
  const bool fine =
      !name.empty() && name.size() <= 255 && name[0] != '.' &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == std::string::npos;
  if (!fine) corrupt(what, "{} name \"{}\", expected a folder inside the dataset", kind, excerpt(name));
}

template <typename What>
void check_ids_counts(const ShardInfo& shard, const What& what) {
  if (shard.entries > (std::uint64_t{1} << 32))
    corrupt(what(), "{} entries, more than u32 ids can name", shard.entries);
  if (shard.spans > shard.records || (shard.records != 0 && (shard.spans == 0 || shard.entries == 0))) {
    corrupt(what(), "{} spans and {} entries for {} records", shard.spans, shard.entries, shard.records);
  }
}

template <typename What>
void check_counts(const Format& format, const ShardInfo& shard, const What& what) {
  if (!format.has_records() && shard.records != 0) corrupt(what(), "{} records in opaque documents", shard.records);
  if (!format.has_metadata() && (shard.spans != 0 || shard.entries != 0)) corrupt(what(), "spans in a token stream");
  if (format.has_metadata() && !format.is_ids() && shard.spans != shard.entries) {
    corrupt(what(), "{} spans and {} entries, expected as many", shard.spans, shard.entries);
  }
  if (format.is_compact() && shard.spans == 0 && shard.records != 0) corrupt(what(), "records without a span");
  if (format.is_ids()) check_ids_counts(shard, what);
}

template <typename What>
ShardFiles expected_files(const Format& format, const ShardInfo& shard, const What& what) {
  try {
    return shard_files(format, shard);
  } catch (const Error& error) {
    corrupt(what(), "{}", error.what());
  }
}

// Returns the files, as its counts make them.
template <typename What>
ShardFiles read_files(const ShardText& from, const Format& format, ShardInfo& shard, Text& text, const What& what) {
  if (!is_object(there(from.files, "files", what))) {
    text.check_strictly();
    corrupt(what(), "\"files\" is no object");
  }
  const std::size_t data_place = format.has_records() ? 1 : 0;
  if (format.has_metadata()) {
    shard.data_bytes = read_u64(find(from.file_bytes, data_place, kDataName, text), kDataName, text, what);
    if (format.is_boundaries() && shard.data_bytes != 0) {
      corrupt(what(), "{} of {} bytes with codec {}, whose entries have none", kDataName, with_commas(shard.data_bytes),
              kBoundariesCodecJson);
    }
  }
  ShardFiles expected = expected_files(format, shard, what);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, bytes] = expected[i];
    const std::uint64_t said = read_u64(find(from.file_bytes, i, name, text), name, text, what);
    if (said != bytes) {
      corrupt(what(), "{} of {} bytes, its counts make {} bytes", name, with_commas(said), with_commas(bytes));
    }
  }
  if (from.file_bytes.size() == expected.size()) return expected;
  text.check_strictly();
  corrupt(what(), "{} files, expected {}", from.file_bytes.size(), expected.size());
}

template <typename What>
void read_digests(const ShardText& from, const Format& format, ShardInfo& shard, Text& text, const What& what) {
  if (!is_object(there(from.digests, "digests", what))) {
    text.check_strictly();
    corrupt(what(), "\"digests\" is no object");
  }
  if (!is_object(there(from.fields, "fields", what))) {
    text.check_strictly();
    corrupt(what(), "\"fields\" of \"digests\" is no object");
  }
  const std::vector<Leaf>& leaves = format.schema.leaves();
  if (from.field_digests.size() != leaves.size()) text.check_strictly();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::string& name = leaves[i].name;
    shard.field_digests.push_back(read_digest(find(from.field_digests, i, name, text), name, text, what));
  }
  if (format.has_metadata()) shard.span_digest = read_digest(from.span_digest, "spans", text, what);
}

// Digests and categories; `names(column, i)` is the table of the i-th category.
template <typename Names, typename What>
std::shared_ptr<const ShardColumns> read_columns(const ShardText& from, const Format& format, const Names& names,
                                                 Text& text, const What& what) {
  if (!is_object(there(from.columns, "values", what))) {
    text.check_strictly();
    corrupt(what(), "\"values\" is no object");
  }
  auto columns = std::make_shared<ShardColumns>();
  std::size_t categories = 0;  // so far
  for (std::size_t c = 0; c < format.columns.size(); ++c) {
    const ValueType& column = format.columns[c];
    columns->digests.push_back(read_digest(find(from.column_digests, c, column.name, text), column.name, text, what));
    columns->categories.push_back(column.is_category ? names(column.name, categories++) : nullptr);
  }
  return columns;
}

template <typename Names, typename What>
ShardFiles read_shard(const ShardText& from, const Format& format, const Names& names, ShardInfo& shard, Text& text,
                      const What& what) {
  shard.records = read_u64(from.records, "records", text, what);
  shard.spans = read_u64(from.spans, "spans", text, what);
  shard.entries = read_u64(from.entries, "entries", text, what);
  check_counts(format, shard, what);
  if (format.has_columns()) shard.columns = read_columns(from, format, names, text, what);
  ShardFiles files = read_files(from, format, shard, text, what);
  read_digests(from, format, shard, text, what);
  return files;
}

std::string read_name(Token token, Text& text) {
  there(token, "name", [&] { return text.what(); });
  const bool plain =
      token.size() >= 2 && token.front() == '"' && token.back() == '"' && token.find('\\') == std::string_view::npos;
  std::string name;
  if (plain) {
    name = token.substr(1, token.size() - 2);
  } else {
    const json value = text.value_of(token, text.what());
    if (!value.is_string()) corrupt(text.what(), "\"name\" is {}, a string was expected", value.type_name());
    name = value.get<std::string>();
  }
  check_name(name, text.what());
  return name;
}

void check_names(const std::vector<ShardInfo>& shards, const std::string& what) {
  const auto rises = [](const ShardInfo& a, const ShardInfo& b) { return a.name >= b.name; };
  if (std::adjacent_find(shards.begin(), shards.end(), rises) == shards.end()) return;  // as a writer numbers them
  std::vector<std::string_view> names(shards.size());
  std::transform(shards.begin(), shards.end(), names.begin(),
                 [](const ShardInfo& shard) -> std::string_view { return shard.name; });
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) corrupt(what, "shard {} is there twice", *twice);
}

CategoriesPtr parse_names(const std::string& column, const json& names, const std::string& what) {
  auto categories = std::make_shared<Categories>();
  for (const json& name : names) {
    if (!name.is_string())
      corrupt(what, "a name of {} is {}, a string was expected", excerpt(column), name.type_name());
    categories->push_back(name.get<std::string>());
  }
  try {
    check_categories(column, *categories);
  } catch (const Error& error) {
    corrupt(what, "{}", error.what());
  }
  return categories;
}

// The names of each category, and the tables that shards make of them.
class TableReader {
 public:
  TableReader(const json& root, const Format& format, const std::string& what) {
    if (!format.has_columns()) return;
    const json& categories = get_object(root, "categories", what);
    for (const ValueType& column : format.columns) {
      if (!column.is_category) continue;
      names_[column.name] = parse_names(column.name, get_array(categories, column.name, what), what);
    }
  }

  // Of a token: how many of the names, the first ones; or a list of their numbers.
  template <typename What>
  CategoriesPtr read(const std::string& column, Token token, Text& text, const What& what) {
    there(token, column, what);
    CategoriesPtr& known = known_[column + std::string(token)];  // most shards have the same
    if (known) return known;
    const Categories& names = *names_.at(column);
    if (!token.starts_with('[')) {
      const std::uint64_t count = read_u64(token, column, text, what);
      check(count <= names.size() && (taken_ += count) <= kMaxTableNames, column, what);
      if (count == names.size()) return known = names_.at(column);
      return known =
                 std::make_shared<const Categories>(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count));
    }
    const json numbers = parse_json_strict(token, what());
    check((taken_ += numbers.size()) <= kMaxTableNames, column, what);
    std::vector<bool> seen(names.size());
    auto table = std::make_shared<Categories>();
    for (const json& each : numbers) {
      const std::uint64_t number = as_u64(each, fmt::format("{}: a number of the column {}", what(), excerpt(column)));
      check(number < names.size() && !seen[number], column, what);
      seen[number] = true;
      table->push_back(names[number]);
    }
    return known = std::move(table);
  }

 private:
  template <typename What>
  static void check(bool is_fine, const std::string& column, const What& what) {
    if (!is_fine) corrupt(what(), "the table of the column {} is no list of different names of it", excerpt(column));
  }

  std::map<std::string, CategoriesPtr> names_;  // by column
  std::unordered_map<std::string, CategoriesPtr> known_;
  std::uint64_t taken_ = 0;
};

void read_shards(ondemand::array list, TableReader tables, Text& text, Manifest& manifest) {
  std::uint64_t total = 0;
  for (ondemand::value value : list) {
    if (!is_object(token_of(value))) {
      text.check_strictly();
      corrupt(text.what(), "a shard that is no object");
    }
    ShardText from;
    walk_shard(value.get_object(), from, text);
    ShardInfo& shard = manifest.shards.emplace_back();
    shard.name = read_name(from.name, text);
    const auto what = [&] { return text.what() + ": shard " + shard.name; };
    const auto names = [&](const std::string& column, std::size_t i) {
      return tables.read(column, find(from.column_tables, i, column, text), text, what);
    };
    for (const ShardFile& file : read_shard(from, manifest.format, names, shard, text, what)) {
      if (!__builtin_add_overflow(total, file.bytes, &total) && total <= INT64_MAX) continue;
      corrupt(text.what(), "bytes of all files: they do not fit 63 bits");
    }
  }
  if (manifest.shards.empty()) corrupt(text.what(), "\"shards\" is no list of shards");
  check_names(manifest.shards, text.what());
}

// ---- the rest

Format parse_format(const json& root, std::string_view name, const std::string& what) {
  if (!root.is_object()) corrupt(what, "no JSON object");
  if (get_string(root, "format", what) != name) corrupt(what, "\"format\" is not \"{}\"", name);
  const std::uint64_t version = get_u64(root, "version", what);
  if (version != kFormatVersion && version != kColumnsFormatVersion) {
    raise(ErrorKind::InvalidArgument, "{}: format version {}, this penstock reads versions {} and {}: use a newer one",
          what, version, kFormatVersion, kColumnsFormatVersion);
  }
  if (get_string(root, "byte_order", what) != "little") corrupt(what, "\"byte_order\" is not \"little\"");
  Format format;
  format.mode = get_string(root, "mode", what);
  if (!get_member(root, "layout", what).is_null()) format.layout = get_string(root, "layout", what);
  const json& fields = get_member(root, "fields", what);
  try {
    if (!fields.is_array() || !fields.empty()) format.schema = Schema::parse(fields.dump());
    format.codec_json = get_member(root, "codec", what).dump();
    if (version == kColumnsFormatVersion) {
      const json& columns = get_member(root, "columns", what);
      if (!columns.is_array() || !columns.empty()) format.columns = parse_column_types(columns.dump());
    }
    check_format(format);
  } catch (const Error& error) {
    corrupt(what, "{}", error.what());
  }
  return format;
}

std::string parse_fingerprint(const json& object, const std::string& what) {
  const json& fingerprint = get_member(object, "fingerprint", what);
  const bool fine = fingerprint.is_string() && parse_digest(fingerprint.get_ref<const std::string&>());
  if (!fine) corrupt(what, "digest \"fingerprint\" is {}, expected 32 hex digits", excerpt(fingerprint.dump()));
  return fingerprint.get<std::string>();
}

// Version 1 has none, and takes such a member for one of a later version.
std::optional<FeaturesInfo> parse_features(const json& root, const std::string& what) {
  if (get_u64(root, "version", what) == kFormatVersion || !root.contains("features")) return std::nullopt;
  const json& object = get_object(root, "features", what);
  FeaturesInfo features{get_string(object, "folder", what), parse_fingerprint(object, what)};
  check_name(features.folder, what, "features'");
  return features;
}

// Checks size and seal, and gives the text the room behind it that simdjson reads.
void prepare(std::string& text, const std::string& what) {
  if (text.empty()) corrupt(what, "an empty file: it was cut off, copy it again");
  check_seal(text, what);
  text.reserve(text.size() + kManifestTextPadding);
}

// simdjson keeps four bytes for each value and separator: of a large text that is hardly more than separators, four
// times its size. A list of shards has one in ten bytes. (Checked strictly first, so that broken JSON is called that.)
void check_density(const std::string& whole, Text& text) {
  constexpr std::uint64_t kSmallBytes = 16U << 20;
  constexpr std::uint64_t kLeastBytes = 4;
  if (whole.size() < kSmallBytes) return;
  const auto is_separator = [](char c) { return c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}'; };
  const auto count = static_cast<std::uint64_t>(std::count_if(whole.begin(), whole.end(), is_separator));
  if (count <= whole.size() / kLeastBytes) return;
  text.check_strictly();
  corrupt(text.what(), "{} separators in {} bytes of JSON: this is no list of shards", with_commas(count),
          with_commas(whole.size()));
}

// Runs `walk` on the document. What simdjson refuses, the strict parser does too, and says where.
template <typename Walk>
void with_document(const std::string& whole, Text& text, const Walk& walk) {
  try {
    ondemand::parser parser;
    ondemand::document document = parser.iterate(whole.data(), whole.size(), whole.capacity());
    walk(document);
  } catch (const simdjson::simdjson_error& error) {
    if (error.error() == simdjson::MEMALLOC) throw std::bad_alloc();
    text.check_strictly();
    corrupt(text.what(), "JSON that cannot be read: {}", error.what());
  }
}

// Where the list ends if nothing follows it but the seal, as a writer of ours has it; else 0.
std::size_t last_list_end(std::string_view whole) {
  const std::size_t seal = whole.rfind("\n  \"crc32c\": \"");
  return seal != std::string_view::npos && seal > 1 && whole.substr(seal - 2, 2) == "]," ? seal - 1 : 0;
}

// All members of the root but the shards, of whose list, [begin, end), only the brackets are left: a small text.
json parse_header(std::string_view whole, std::size_t begin, std::size_t end, Text& text) {
  std::string small(whole.substr(0, begin));
  small.append("[]").append(whole.substr(end));
  try {
    return parse_json_strict(small, text.what(), kMaxHeaderBytes);
  } catch (const Error&) {
    text.check_strictly();  // the same refusal, with the place in the whole text
    throw;
  }
}

// `list_end` is where the list of shards ends in the text, if that is known, so that it is walked once and not twice: 0
// if not. nullopt if it does not end there.
std::optional<Manifest> read_manifest(const std::string& whole, std::size_t list_end, Text& text) {
  const std::string& what = text.what();
  Manifest manifest;
  bool ends_there = true;
  with_document(whole, text, [&](ondemand::document& document) {
    ondemand::value shards;
    if (document["shards"].get(shards) != simdjson::SUCCESS) {
      text.check_strictly();
      corrupt(what, "\"shards\" is missing");
    }
    if (!token_of(shards).starts_with('[')) {
      text.check_strictly();
      corrupt(what, "\"shards\" is no list of shards");
    }
    const auto list_begin = static_cast<std::size_t>(shards.raw_json_token().data() - whole.data());
    std::size_t end = list_end;
    if (end == 0) {
      end = list_begin + ondemand::array(shards.get_array()).raw_json().value().size();
      document.rewind();
      shards = document["shards"];
    }
    const json root = parse_header(whole, list_begin, std::max(list_begin, end), text);
    manifest.format = parse_format(root, kFormatName, what);
    manifest.tokenizer_json = get_member(root, "tokenizer", what).dump();
    manifest.fingerprint = parse_fingerprint(root, what);
    manifest.features = parse_features(root, what);
    constexpr std::size_t kLeastShardBytes = 160;  // about: more are taken as they come
    manifest.shards.reserve((whole.size() - list_begin) / kLeastShardBytes + 1);
    advise_huge_pages(manifest.shards.data(), manifest.shards.capacity() * sizeof(ShardInfo));
    read_shards(shards.get_array(), TableReader(root, manifest.format, what), text, manifest);
    const char* at = nullptr;
    ends_there = document.current_location().get(at) == simdjson::SUCCESS && at == whole.data() + end;
  });
  if (!ends_there && list_end != 0) return std::nullopt;
  const std::string fingerprint = fingerprint_of(manifest.format, manifest.shards);
  if (fingerprint != manifest.fingerprint) {
    corrupt(what, "fingerprint {}, its shards make {}", manifest.fingerprint, fingerprint);
  }
  return manifest;
}

}  // namespace

Manifest parse_manifest(std::string whole, const std::string& what) {
  prepare(whole, what);
  Text text(whole, what);
  if (whole.size() > kMaxManifestBytes) text.check_strictly();  // refuses it
  check_density(whole, text);
  if (const std::size_t end = last_list_end(whole); end != 0) {
    try {
      if (auto manifest = read_manifest(whole, end, text)) return std::move(*manifest);
    } catch (const Error&) {  // which may come of members after the list, that this passed over
    }
  }
  return read_manifest(whole, 0, text).value();
}

std::pair<Format, ShardInfo> parse_shard_manifest(std::string whole, const std::string& what) {
  prepare(whole, what);
  Text text(whole, what);
  json root = parse_json_strict(whole, what, kMaxShardManifestBytes);
  const JsonGuard guard(root);
  Format format = parse_format(root, kShardFormatName, what);
  ShardInfo shard;
  with_document(whole, text, [&](ondemand::document& document) {
    ShardText from;
    walk_shard(document.get_object(), from, text);
    const auto names = [&](const std::string& column, std::size_t) {
      const json& categories = get_object(get_object(root, "values", what), "categories", what);
      return parse_names(column, get_array(categories, column, what), what);
    };
    read_shard(from, format, names, shard, text, [&] { return what; });
  });
  shard.task_json = get_member(root, "task", what).dump();
  return {std::move(format), std::move(shard)};
}

}  // namespace penstock::layout
