// MDS of mosaicml-streaming (format/mds/writer.py): index.json says columns, files and whether they are compressed; a
// shard is read by mds_shard.h.
#include "core/base/checked.h"
#include "core/base/json.h"
#include "layout/foreign/foreign_index.h"
#include "layout/foreign/mds_shard.h"
#include "layout/foreign/token_files.h"
#include "layout/reading/reads.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace penstock::layout {
namespace {

using nlohmann::json;

constexpr std::string_view kArray = "ndarray";
constexpr const char* kTokenNames[] = {"tokens", "input_ids"};

// All shards of a dataset have the same.
struct Columns {
  std::vector<MdsColumn> all;
  bool operator==(const Columns& other) const {
    return std::equal(all.begin(), all.end(), other.all.begin(), other.all.end(),
                      [](const MdsColumn& a, const MdsColumn& b) {
                        return a.name == b.name && a.encoding == b.encoding && a.bytes == b.bytes;
                      });
  }
};

Columns columns_of(const json& shard, const std::string& what) {
  const json& names = get_array(shard, "column_names", what);
  const json& encodings = get_array(shard, "column_encodings", what);
  const json& sizes = get_array(shard, "column_sizes", what);
  if (names.size() != encodings.size() || names.size() != sizes.size() || names.empty()) {
    raise(ErrorKind::Corruption, "{}: {} names, {} encodings and {} sizes of columns", what, names.size(),
          encodings.size(), sizes.size());
  }
  Columns columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].is_string() || !encodings[i].is_string()) {
      raise(ErrorKind::Corruption, "{}: the name or encoding of column {} is no text", what, i);
    }
    MdsColumn& column = columns.all.emplace_back();
    column.name = names[i].get<std::string>();
    column.encoding = encodings[i].get<std::string>();
    if (sizes[i].is_null()) continue;
    column.bytes = as_u64(sizes[i], what);
    if (*column.bytes > UINT32_MAX) {
      raise(ErrorKind::Corruption, "{}: column {} has {} bytes", what, excerpt(column.name), *column.bytes);
    }
  }
  return columns;
}

std::string list_of(const Columns& columns) {
  std::vector<std::string> texts;
  for (const MdsColumn& each : columns.all) texts.push_back(fmt::format("{} ({})", each.name, each.encoding));
  return listed(texts);
}

std::size_t find_column(const Columns& columns, const std::string& wanted, const std::string& path) {
  const auto find = [&](const std::string& name) {
    const auto is_it = [&](const MdsColumn& each) { return each.name == name; };
    const auto found = std::find_if(columns.all.begin(), columns.all.end(), is_it);
    return static_cast<std::size_t>(found - columns.all.begin());
  };
  if (!wanted.empty()) {
    if (const std::size_t at = find(wanted); at < columns.all.size()) return at;
    raise(ErrorKind::InvalidArgument, "{}: there is no column {}; its columns are {}", path, excerpt(wanted),
          list_of(columns));
  }
  for (const char* name : kTokenNames) {
    if (const std::size_t at = find(name); at < columns.all.size()) return at;
  }
  raise(ErrorKind::InvalidArgument,
        "{}: no column is called tokens or input_ids: say which one has the tokens (column=); its columns are {}", path,
        list_of(columns));
}

// The number of NumPy's name ("int32"), as arrays have it; 0: of no integer.
unsigned code_of(std::string_view name) {
  for (const unsigned code : {8U, 9U, 16U, 17U, 32U, 33U, 64U, 65U}) {
    if (mds_type(code)->name() == name) return code;
  }
  return 0;
}

// Whether "2048" or "2,1024" is a shape of arrays of this size.
bool is_shape(std::string_view text, std::uint64_t item_bytes, const MdsColumn& column) {
  std::uint64_t count = 1;
  while (true) {
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    if (error != std::errc() || length == 0 || __builtin_mul_overflow(count, length, &count)) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != ',') return false;
    text.remove_prefix(1);
  }
  return column.bytes && *column.bytes % item_bytes == 0 && *column.bytes / item_bytes == count;
}

[[noreturn]] void refuse_column(const Columns& columns, const MdsColumn& column, const std::string& path) {
  if (column.encoding == "pkl") {
    raise(ErrorKind::InvalidArgument,
          "{}: column {} is pickled, which runs any code when it is read: penstock unpickles nothing", path,
          excerpt(column.name));
  }
  raise(
      ErrorKind::InvalidArgument,
      "{}: column {} is {}, which holds no tokens: an ndarray of integers or bytes does (column=); its columns are {}",
      path, excerpt(column.name), excerpt(column.encoding), list_of(columns));
}

// How the tokens lie in the column; without a type where each array says its own.
struct Encoding {
  std::optional<ScalarType> type;
  bool is_array = false;
  bool says_type = false;
  bool says_shape = false;
};

Encoding encoding_of(const Columns& columns, const MdsColumn& column, const std::string& path) {
  const std::string_view text = column.encoding;
  if (text == "bytes") return {};
  if (text != kArray && !text.starts_with("ndarray:")) refuse_column(columns, column, path);
  Encoding encoding{std::nullopt, true, true, true};
  if (text == kArray) return encoding;
  const std::string_view arguments = text.substr(kArray.size() + 1);
  const std::size_t colon = arguments.find(':');
  const std::string_view name = arguments.substr(0, colon);
  if (!name.empty()) {
    encoding.type = mds_type(code_of(name));
    encoding.says_type = false;
    if (!encoding.type) refuse_column(columns, column, path);
  }
  if (colon == std::string_view::npos) return encoding;
  encoding.says_shape = false;
  if (!encoding.type || !is_shape(arguments.substr(colon + 1), encoding.type->bytes, column)) {
    raise(ErrorKind::Corruption, "{}: column {} of {} bytes is {}", path, excerpt(column.name),
          column.bytes.value_or(0), excerpt(column.encoding));
  }
  return encoding;
}

// The type of the first array of the first shard.
ScalarType first_type(const ForeignFile& file, const Columns& columns, std::size_t column) {
  std::uint64_t variable = 0;
  for (const MdsColumn& each : columns.all) variable += each.bytes ? 0 : 1;
  std::array<std::byte, 4> number{};
  file.read(4, number);
  const std::uint64_t begin = load<std::uint32_t>(number.data());
  std::vector<std::byte> sizes(4 * variable);
  file.read(begin, sizes);
  std::uint64_t at = begin + sizes.size();
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < column; ++i) {
    const MdsColumn& each = columns.all[i];
    at += each.bytes ? *each.bytes : load_at<std::uint32_t>(sizes.data(), next++);
  }
  std::array<std::byte, 1> code{};
  file.read(at, code);
  const auto type = mds_type(std::to_integer<unsigned>(code[0]));
  if (type) return *type;
  raise(ErrorKind::InvalidArgument, "{}: column {}: its first array is of type {}, which are no integers", file.path(),
        excerpt(columns.all[column].name), std::to_integer<unsigned>(code[0]));
}

// What all shards that are opened as one share.
struct Opening {
  std::optional<Columns> columns;
  MdsTokens tokens;
  const std::string& column;
  std::string given;  // the type, as the user said it
};

void choose_tokens(Opening& opening, const ForeignFile& file, const std::string& path) {
  MdsTokens& tokens = opening.tokens;
  tokens.columns = opening.columns->all;
  tokens.column = find_column(*opening.columns, opening.column, path);
  const MdsColumn& column = tokens.columns[tokens.column];
  const Encoding encoding = encoding_of(*opening.columns, column, path);
  tokens.is_array = encoding.is_array;
  tokens.says_type = encoding.says_type;
  tokens.says_shape = encoding.says_shape;
  if (!encoding.is_array && opening.given.empty()) {
    raise(ErrorKind::InvalidArgument,
          "{}: column {} is bytes, which do not say what they hold: give the dtype, u2, u4, i8, …", path,
          excerpt(column.name));
  }
  if (!encoding.is_array) {
    tokens.type = ScalarType::parse(opening.given);
    return;
  }
  tokens.type = encoding.type ? *encoding.type : first_type(file, *opening.columns, tokens.column);
  if (!opening.given.empty() && opening.given != tokens.type.str()) {
    raise(ErrorKind::InvalidArgument, "{}: column {} has {}, the dtype given is {}", path, excerpt(column.name),
          tokens.type.str(), opening.given);
  }
}

void refuse_compressed(const json& shard, const std::string& path, const std::string& what) {
  const json* const compression = find_member(shard, "compression", what);
  const json* const zipped = find_member(shard, "zip_data", what);
  const bool is_none = compression == nullptr || compression->is_null();
  if (is_none && (zipped == nullptr || zipped->is_null())) return;
  raise(ErrorKind::InvalidArgument,
        "{}: its shards are compressed ({}), which cannot be read in place: `penstock import` makes a dataset of them",
        path, is_none ? "zip_data" : excerpt(compression->dump()));
}

Shard open_shard(const Location& folder, const json& entry, const std::string& what, Opening& opening, Digest& digest) {
  const std::string format = get_string(entry, "format", what);
  if (format != "mds" || get_u64(entry, "version", what) != 2) {
    raise(ErrorKind::InvalidArgument, "{}: shards of format {}, version {}: MDS of version 2 is opened", folder.path,
          excerpt(format), get_u64(entry, "version", what));
  }
  refuse_compressed(entry, folder.path, what);
  const json& raw = get_object(entry, "raw_data", what);
  const Location location{folder.store, foreign_file_path(folder, get_string(raw, "basename", what))};
  const ForeignFile file(location);
  if (const std::uint64_t bytes = get_u64(raw, "bytes", what); bytes != file.bytes()) {
    raise(ErrorKind::Corruption, "{}: {} bytes, {} says {}", location.path, with_commas(file.bytes()), what,
          with_commas(bytes));
  }
  Columns columns = columns_of(entry, what);
  if (!opening.columns) {
    opening.columns = std::move(columns);
    choose_tokens(opening, file, folder.path);
  } else if (!(columns == *opening.columns)) {
    raise(ErrorKind::InvalidArgument, "{}: its columns are {}, those before it {}", location.path, list_of(columns),
          list_of(*opening.columns));
  }
  Shard shard;
  shard.name = location.path;
  auto table =
      std::make_shared<DocumentTable>(scan_mds_shard(file, opening.tokens, get_u64(entry, "samples", what), digest));
  file.add_to(digest);
  shard.records = table->tokens();
  shard.spans = table->documents();
  shard.stream = file.file();
  shard.table = std::move(table);
  return shard;
}

}  // namespace

DatasetPtr open_mds(const std::vector<Location>& folders, const std::string& column, const std::string& descr_json) {
  if (folders.empty()) raise(ErrorKind::InvalidArgument, "no folders of MDS to open");
  auto dataset = std::make_shared<Dataset>();
  Digest digest;
  digest.update("penstock mds\n");
  Opening opening{{}, {}, column, given_token_type(descr_json, folders.front().path)};
  for (const Location& given : folders) {
    const Location folder = foreign_folder(given);
    const std::string what = folder.path + "/" + kForeignIndexName;
    const json index = read_foreign_index(folder);
    const json& shards = get_array(index, "shards", what);
    if (shards.empty()) raise(ErrorKind::InvalidArgument, "{}: it has no shards", folder.path);
    for (const json& entry : shards) {
      dataset->shards.push_back(open_shard(folder, entry, what, opening, digest));
    }
    dataset->add_store(folder.store);
  }
  digest.update(fmt::format("{} {}", opening.tokens.columns[opening.tokens.column].name, opening.tokens.type.str()));
  dataset->path = folders.size() == 1 ? foreign_folder(folders[0]).path
                                      : fmt::format("{} … {}", folders.front().path, folders.back().path);
  dataset->kind = "mds";
  dataset->spans = SpanKind::Bounds;
  dataset->schema = token_schema(opening.tokens.type.str());
  return finish_foreign(std::move(dataset), digest);
}

}  // namespace penstock::layout
