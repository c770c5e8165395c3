// Token files opened in place: bare ones (nanoGPT, OLMo's .npy, datatrove's .ds, any memory-mapped array), real .npy
// files and those with llm.c's header. Which one a file is, its first bytes say.
#include "core/base/checked.h"
#include "layout/dataset.h"
#include "layout/dataset/format.h"
#include "layout/foreign/foreign_file.h"
#include "layout/foreign/npy_header.h"
#include "layout/reading/reads.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace penstock::layout {
namespace {

// llm.c, dev/data/data_common.py: 256 i32: magic, version, token count, zeros; then the tokens.
constexpr std::uint64_t kLlmcHeaderBytes = 1024;
constexpr std::int32_t kLlmcGpt2 = 20240520;
constexpr std::int32_t kLlmcLlama3 = 20240801;
constexpr std::int32_t kLlmcEvaluation = 20240522;

// What one file turned out to be.
struct FoundTokens {
  std::string kind;
  Schema schema;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> count;  // as its header says
};

Schema tokens_of(const char* type) {
  return Schema::parse(fmt::format(R"([["token","{}"]])", type));
}

std::int32_t header_field(std::span<const std::byte> head, std::uint64_t i) {
  return load_at<std::int32_t>(head.data(), i);
}

// Magic, version and the zeros after the used fields, as far as the file goes: no bare token file looks so by chance,
// and a truncated one of llm.c still does.
bool has_llmc_header(std::span<const std::byte> head) {
  if (head.size() < 8) return false;
  const std::int32_t magic = header_field(head, 0);
  if (magic != kLlmcGpt2 && magic != kLlmcLlama3 && magic != kLlmcEvaluation) return false;
  const std::size_t end = std::min<std::size_t>(head.size(), kLlmcHeaderBytes);
  const std::size_t zeros = std::min<std::size_t>(end, 16);
  return std::all_of(head.begin() + static_cast<std::ptrdiff_t>(zeros), head.begin() + static_cast<std::ptrdiff_t>(end),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

FoundTokens read_llmc(const ForeignFile& file, std::span<const std::byte> head) {
  const std::int32_t magic = header_field(head, 0);
  if (magic == kLlmcEvaluation) {
    raise(ErrorKind::InvalidArgument,
          "{}: an evaluation file of llm.c (magic {}): multiple-choice examples, not a stream", file.path(), magic);
  }
  if (head.size() < kLlmcHeaderBytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes, llm.c's header alone has {}", file.path(), file.bytes(),
          kLlmcHeaderBytes);
  }
  const std::int32_t version = magic == kLlmcGpt2 ? 1 : 7;
  const std::int32_t count = header_field(head, 2);
  if (header_field(head, 1) != version || count < 0) {
    raise(ErrorKind::Corruption, "{}: llm.c's magic {} with version {} and {} tokens, version {} is wanted",
          file.path(), magic, header_field(head, 1), count, version);
  }
  return {"llm.c", tokens_of(magic == kLlmcGpt2 ? "<u2" : "<u4"), kLlmcHeaderBytes, static_cast<std::uint64_t>(count)};
}

FoundTokens read_npy(const ForeignFile& file) {
  NpyHeader header = read_npy_header(file);
  try {
    return {"numpy", Schema::parse(header.descr_json), header.data_offset, header.count};
  } catch (const Error& error) {
    raise(ErrorKind::InvalidArgument, "{}: NumPy dtype {}: {}", file.path(), excerpt(header.descr_json), error.what());
  }
}

FoundTokens sniff(const ForeignFile& file, const std::optional<Schema>& given) {
  const std::vector<std::byte> head = file.head(kLlmcHeaderBytes);
  if (is_npy(head)) return read_npy(file);
  if (has_llmc_header(head)) return read_llmc(file, head);
  if (given) return {"raw", *given, 0, std::nullopt};
  if (head.empty()) raise(ErrorKind::InvalidArgument, "{}: an empty file: copy it again, or leave it out", file.path());
  raise(ErrorKind::InvalidArgument,
        "{}: neither NumPy's nor llm.c's header, and bare token files do not say their type: give the dtype, u2 (GPT-2 "
        "and other vocabularies up to 65,536), u4 (larger ones), or a structured one",
        file.path());
}

bool same_scalar(const Schema& a, const Schema& b) {
  if (a.leaves().size() != 1 || b.leaves().size() != 1) return false;
  const Leaf& x = a.leaves()[0];
  const Leaf& y = b.leaves()[0];
  return x.kind == y.kind && x.item_bytes == y.item_bytes && x.dims == y.dims;
}

// The given type may name the field of a file that only knows its scalar type; else both must be equal.
void apply_given(const ForeignFile& file, const Schema& given, FoundTokens& found) {
  if (given.json() == found.schema.json()) return;
  if (!same_scalar(given, found.schema)) {
    raise(ErrorKind::InvalidArgument, "{}: its header says {}, the dtype given is {}", file.path(),
          excerpt(found.schema.json()), excerpt(given.json()));
  }
  found.schema = given;
}

Shard make_shard(const ForeignFile& file, const FoundTokens& found) {
  const std::uint64_t size = found.schema.record_bytes();
  const std::uint64_t bytes = file.bytes() - found.offset;
  if (found.count && checked_mul(*found.count, size, file.path().c_str()) != bytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes after its header, which says {} records of {} bytes", file.path(),
          with_commas(bytes), with_commas(*found.count), size);
  }
  if (bytes % size != 0) {
    raise(ErrorKind::Corruption, "{}: {} bytes is not a multiple of {}, the size of a record {}: is that its dtype?",
          file.path(), with_commas(bytes), size, excerpt(found.schema.json()));
  }
  Shard shard;
  shard.name = file.path();
  shard.records = bytes / size;
  shard.stream = file.file();
  shard.stream_offset = found.offset;
  return shard;
}

void check_agrees(const Dataset& dataset, const FoundTokens& found, const std::string& path) {
  if (found.kind == dataset.kind && found.schema.json() == dataset.schema.json()) return;
  raise(ErrorKind::InvalidArgument, "{}: a {} file of {}, but {} is a {} file of {}", path, found.kind,
        excerpt(found.schema.json()), dataset.shards[0].name, dataset.kind, excerpt(dataset.schema.json()));
}

}  // namespace

DatasetPtr open_raw(const std::vector<Location>& files, const std::string& descr_json) {
  if (files.empty()) raise(ErrorKind::InvalidArgument, "no token files to open");
  std::optional<Schema> given;
  if (!descr_json.empty()) given = Schema::parse(descr_json);
  auto dataset = std::make_shared<Dataset>();
  Digest digest;
  for (const Location& location : files) {
    const ForeignFile file(location);
    dataset->add_store(location.store);
    FoundTokens found = sniff(file, given);
    if (given) apply_given(file, *given, found);
    if (dataset->shards.empty()) {
      dataset->kind = found.kind;
      dataset->schema = found.schema;
      digest.update(fmt::format("penstock {} {}\n", found.kind, found.schema.json()));
    }
    check_agrees(*dataset, found, file.path());
    dataset->shards.push_back(make_shard(file, found));
    file.add_to(digest);
  }
  dataset->path = files.front().path;
  if (files.size() > 1) dataset->path += " … " + files.back().path;
  dataset->mode = kModeTokens;
  dataset->stored_record_bytes = dataset->schema.record_bytes();
  dataset->codec_json = "null";
  dataset->tokenizer_json = "null";
  dataset->fingerprint = digest.hex();
  dataset->finish();
  return dataset;
}

}  // namespace penstock::layout
