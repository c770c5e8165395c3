// datatrove's token files (pipeline/tokens/tokenizer.py): .ds bare tokens of 2 or 4 bytes; beside it .ds.index, u64
// ends of documents in tokens; .ds.loss, a bool for each token; .ds.metadata, text: "tokenizer|token size", then the
// count.
#include "core/base/checked.h"
#include "layout/documents/document_bounds.h"
#include "layout/foreign/foreign_file.h"
#include "layout/foreign/token_files.h"
#include "layout/reading/reads.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::string_view kSuffixes[] = {".index", ".loss", ".metadata"};

std::optional<ForeignFile> open_beside(const Location& location, std::string_view suffix) {
  try {
    return ForeignFile({location.store, location.path + std::string(suffix)});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::NotFound) throw;
    return std::nullopt;
  }
}

// The token size of the first line, "tokenizer|2"; 0 where it does not say one.
std::uint64_t size_in_metadata(const Location& location) {
  const std::optional<ForeignFile> file = open_beside(location, ".metadata");
  if (!file) return 0;
  const std::vector<std::byte> head = file->head(4096);
  std::string_view line(reinterpret_cast<const char*>(head.data()), head.size());
  line = line.substr(0, line.find('\n'));
  if (line.find('|') == std::string_view::npos) return 0;
  line.remove_prefix(line.rfind('|') + 1);
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), size);
  return error == std::errc() && end == line.data() + line.size() ? size : 0;
}

// The end of the last document, which is all tokens; nullopt without one.
std::optional<std::uint64_t> last_end(const std::optional<ForeignFile>& index) {
  if (!index) return std::nullopt;
  if (index->bytes() % 8 != 0) {
    raise(ErrorKind::Corruption, "{}: {} bytes, a multiple of 8 is wanted: the end of each document, u64",
          index->path(), with_commas(index->bytes()));
  }
  if (index->bytes() == 0) return std::nullopt;
  return load<std::uint64_t>(index->tail(8).data());
}

struct Opened {
  Shard shard;
  std::uint64_t token_bytes = 0;
  bool has_documents = false;
  bool has_loss = false;
};

// By the index where there is one, which counts the tokens; else as the metadata or the user says.
std::uint64_t token_bytes(const Location& location, const ForeignFile& stream, const std::optional<ForeignFile>& index,
                          std::uint64_t given) {
  const std::optional<std::uint64_t> tokens = last_end(index);
  if (tokens && *tokens > 0) {
    for (const std::uint64_t size : {2, 4}) {
      if (*tokens == stream.bytes() / size && stream.bytes() % size == 0) return size;
    }
    raise(ErrorKind::Corruption, "{}: {} bytes, but the documents of {} end at token {}: neither 2 nor 4 bytes each",
          stream.path(), with_commas(stream.bytes()), index->path(), with_commas(*tokens));
  }
  const std::uint64_t said = size_in_metadata(location);
  if (said == 2 || said == 4) return said;
  if (given > 0) return given;
  raise(ErrorKind::InvalidArgument,
        "{}: neither an .index nor a .metadata beside it says whether its tokens have 2 or 4 bytes: give the dtype, u2 "
        "or u4",
        stream.path());
}

void add_loss(const ForeignFile& loss, Shard& shard, Digest& digest) {
  if (loss.bytes() != shard.records) {
    raise(ErrorKind::Corruption, "{}: {} bytes, one is wanted for each of {} tokens", loss.path(),
          with_commas(loss.bytes()), with_commas(shard.records));
  }
  loss.add_to(digest);
  shard.columns = loss.file();
}

Opened open_one(const Location& location, std::uint64_t given, Digest& digest) {
  const ForeignFile stream(location);
  const std::optional<ForeignFile> index = open_beside(location, ".index");
  const std::optional<ForeignFile> loss = open_beside(location, ".loss");
  Opened opened;
  opened.token_bytes = token_bytes(location, stream, index, given);
  if (stream.bytes() % opened.token_bytes != 0) {
    raise(ErrorKind::Corruption, "{}: {} bytes is not a multiple of {}, the size of a token", stream.path(),
          with_commas(stream.bytes()), opened.token_bytes);
  }
  Shard& shard = opened.shard;
  shard.name = location.path;
  shard.records = stream.bytes() / opened.token_bytes;
  shard.stream = stream.file();
  stream.add_to(digest);
  if (index) {
    opened.has_documents = true;
    shard.spans = index->bytes() / 8;
    shard.index = index->file();
    shard.bounds = std::make_shared<DocumentBounds>(*index, BoundsArray{}, shard.spans, shard.records, digest);
  }
  if (loss) {
    opened.has_loss = true;
    add_loss(*loss, shard, digest);
  }
  return opened;
}

void check_alike(const Opened& first, const Opened& other) {
  const auto check = [&](bool same, const char* what) {
    if (same) return;
    raise(ErrorKind::InvalidArgument, "{} and {} do not go together: only one of them has {}", first.shard.name,
          other.shard.name, what);
  };
  check(first.has_documents == other.has_documents, "documents (.index)");
  check(first.has_loss == other.has_loss, "a mask (.loss)");
  check(first.token_bytes == other.token_bytes, "tokens of 2 bytes");
}

}  // namespace

std::string datatrove_path(const std::string& path) {
  for (const std::string_view suffix : kSuffixes) {
    if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
  }
  return path;
}

DatasetPtr open_datatrove(const std::vector<Location>& files, const std::string& descr_json) {
  if (files.empty()) raise(ErrorKind::InvalidArgument, "no .ds files to open");
  const std::string given = given_token_type(descr_json, files.front().path);
  if (!given.empty() && given != "<u2" && given != "<u4") {
    raise(ErrorKind::InvalidArgument, "{}: dtype {}: datatrove's tokens are u2 or u4", files.front().path, given);
  }
  auto dataset = std::make_shared<Dataset>();
  Digest digest;
  digest.update("penstock datatrove\n");
  std::optional<Opened> first;
  for (const Location& location : files) {
    Opened opened = open_one(location, given.empty() ? 0 : given == "<u2" ? 2 : 4, digest);
    if (first) check_alike(*first, opened);
    dataset->add_store(location.store);
    dataset->shards.push_back(opened.shard);
    if (!first) first = std::move(opened);
  }
  const std::string type = fmt::format("<u{}", first->token_bytes);
  if (!given.empty() && given != type) {
    raise(ErrorKind::InvalidArgument, "{}: its tokens are {}, the dtype given is {}", first->shard.name, type, given);
  }
  digest.update(type);
  dataset->kind = "datatrove";
  dataset->spans = first->has_documents ? SpanKind::Bounds : SpanKind::None;
  dataset->fields_apart = first->has_loss;
  dataset->schema =
      first->has_loss ? Schema::parse(fmt::format(R"([["token","{}"],["loss","|b1"]])", type)) : token_schema(type);
  return finish_foreign(std::move(dataset), digest);
}

}  // namespace penstock::layout
