// litdata's chunks of TokensLoader (streaming/writer.py, item_loader.py). index.json: {"chunks": [{"filename",
// "chunk_size" (items), "dim" (tokens)}], "config": {"data_format": ["no_header_tensor:16"], "item_loader", …}}. A
// chunk: u32 items, u32 offsets[items + 1] (bytes of the chunk), then the items' bare tokens, end to end.
#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/rows/scalar_type.h"
#include "layout/documents/document_bounds.h"
#include "layout/foreign/foreign_index.h"
#include "layout/foreign/token_files.h"
#include "layout/reading/reads.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace penstock::layout {
namespace {

using nlohmann::json;

// constants.py: "DON'T CHANGE ORDER". Those that are no integers are empty.
constexpr std::string_view kTensorTypes[] = {"",    "",    "",    "",    "",    "",    "",    "",    "", "",   "",
                                             "|u1", "|i1", "<i2", "<i2", "<i4", "<i4", "<i8", "<i8", "", "<u2"};
constexpr std::string_view kNumpyTypes[] = {"|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8"};

// The number after `prefix`; -1 where the text is another one.
int code_after(std::string_view prefix, std::string_view text) {
  if (!text.starts_with(prefix) || text.size() > prefix.size() + 2 || text.size() == prefix.size()) return -1;
  int code = 0;
  for (const char digit : text.substr(prefix.size())) {
    if (digit < '0' || digit > '9') return -1;
    code = 10 * code + (digit - '0');
  }
  return code;
}

std::string_view type_in(std::span<const std::string_view> types, int code) {
  return code < 0 || static_cast<std::size_t>(code) >= types.size() ? "" : types[static_cast<std::size_t>(code)];
}

// NumPy's type of the tokens, as index.json says. Throws InvalidArgument for what are no chunks of TokensLoader.
std::string token_type(const json& index, const std::string& path) {
  const std::string what = path + "/" + kForeignIndexName;
  const json& config = get_object(index, "config", what);
  for (const char* key : {"compression", "encryption", "ipc_compression"}) {
    const json* const value = find_member(config, key, what);
    if (value == nullptr || value->is_null()) continue;
    raise(ErrorKind::InvalidArgument, "{}: its chunks have {} {}: write them without to open them in place", path, key,
          excerpt(value->dump()));
  }
  const json& formats = get_array(config, "data_format", what);
  const json* const loader = find_member(config, "item_loader", what);
  const bool is_tokens = loader == nullptr || *loader == "TokensLoader";
  std::string_view type;
  if (formats.size() == 1 && formats[0].is_string() && is_tokens) {
    const auto text = formats[0].get<std::string>();
    type = type_in(kTensorTypes, code_after("no_header_tensor:", text));
    if (type.empty()) type = type_in(kNumpyTypes, code_after("no_header_numpy:", text));
  }
  if (type.empty()) {
    raise(ErrorKind::InvalidArgument,
          "{}: litdata's items are {} for {}: chunks of integers that were written for TokensLoader are opened in "
          "place (optimize(…, item_loader=TokensLoader()))",
          path, excerpt(formats.dump()), loader == nullptr ? "an unknown loader" : excerpt(loader->dump()));
  }
  return std::string(type);
}

Shard open_chunk(const Location& location, const json& entry, const std::string& what, std::uint64_t token_bytes,
                 Digest& digest) {
  const std::uint64_t items = get_u64(entry, "chunk_size", what);
  const std::uint64_t tokens = get_u64(entry, "dim", what);
  const ForeignFile chunk(location);
  const std::uint64_t begin = checked_add(checked_mul(items, 4, what.c_str()), 8, what.c_str());
  const std::uint64_t end = checked_add(begin, checked_mul(tokens, token_bytes, what.c_str()), what.c_str());
  if (chunk.bytes() != end) {
    raise(ErrorKind::Corruption, "{}: {} bytes, but {} items and {} tokens want {}", chunk.path(),
          with_commas(chunk.bytes()), with_commas(items), with_commas(tokens), with_commas(end));
  }
  if (const auto said = load<std::uint32_t>(chunk.head(4).data()); said != items) {
    raise(ErrorKind::Corruption, "{}: it says {} items, {} says {}", chunk.path(), said, what, with_commas(items));
  }
  Shard shard;
  shard.name = location.path;
  shard.records = tokens;
  shard.spans = items;
  shard.stream = shard.index = chunk.file();
  shard.stream_offset = begin;
  const BoundsArray array{.offset = 4, .width = 4, .has_first = true, .base = begin, .unit = token_bytes};
  shard.bounds = std::make_shared<DocumentBounds>(chunk, array, items, tokens, digest);
  chunk.add_to(digest);
  return shard;
}

}  // namespace

DatasetPtr open_litdata(const std::vector<Location>& folders) {
  if (folders.empty()) raise(ErrorKind::InvalidArgument, "no folders of litdata to open");
  auto dataset = std::make_shared<Dataset>();
  Digest digest;
  digest.update("penstock litdata\n");
  std::string type;
  for (const Location& given : folders) {
    const Location folder = foreign_folder(given);
    const std::string what = folder.path + "/" + kForeignIndexName;
    const json index = read_foreign_index(folder);
    const json& chunks = get_array(index, "chunks", what);
    const std::string own = token_type(index, folder.path);
    if (type.empty()) type = own;
    if (own != type) {
      raise(ErrorKind::InvalidArgument, "{}: tokens of type {}, but those of {} are {}", folder.path, own,
            folders.front().path, type);
    }
    if (chunks.empty()) raise(ErrorKind::InvalidArgument, "{}: it has no chunks", folder.path);
    for (const json& entry : chunks) {
      const Location chunk{folder.store, foreign_file_path(folder, get_string(entry, "filename", what))};
      dataset->shards.push_back(open_chunk(chunk, entry, what, ScalarType::parse(type).bytes, digest));
    }
    dataset->add_store(folder.store);
  }
  digest.update(type);
  dataset->path = folders.size() == 1 ? foreign_folder(folders[0]).path
                                      : fmt::format("{} … {}", folders.front().path, folders.back().path);
  dataset->kind = "litdata";
  dataset->spans = SpanKind::Bounds;
  dataset->schema = token_schema(type);
  return finish_foreign(std::move(dataset), digest);
}

}  // namespace penstock::layout
