#include "layout/foreign/field_arrays.h"

#include "core/base/checked.h"
#include "core/rows/cast_runs.h"
#include "layout/dataset/digest.h"
#include "layout/dataset/format.h"
#include "layout/foreign/foreign_file.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kSampleBytes = 4096;

void check_starts(const std::vector<std::uint64_t>& starts, const std::string& path) {
  if (starts.size() < 2) raise(ErrorKind::InvalidArgument, "{}: it has no documents", path);
  if (starts.front() != 0) raise(ErrorKind::Corruption, "{}: document 0 begins at value {}", path, starts.front());
  const auto falls = std::adjacent_find(starts.begin(), starts.end(), std::greater<>());
  if (falls == starts.end()) return;
  raise(ErrorKind::Corruption, "{}: document {} begins at value {} and ends at {}", path,
        with_commas(static_cast<std::uint64_t>(falls - starts.begin())), with_commas(falls[0]), with_commas(falls[1]));
}

void add_sample(const ForeignFile& file, std::uint64_t offset, std::uint64_t size, Digest& digest) {
  std::array<std::byte, kSampleBytes> sample{};
  file.read(offset, std::span(sample).first(size));
  digest.update(std::span<const std::byte>(sample).first(size));
}

// What of the array is in the fingerprint: its ends.
void check_field(const FieldArray& field, std::uint64_t values, const ForeignFile& file, Digest& digest) {
  const std::string& path = file.path();
  const std::uint64_t chunks = field.chunk_values == 0 ? 0 : (values + field.chunk_values - 1) / field.chunk_values;
  if (field.stored.bytes == 0 || field.chunks.size() < chunks || (values > 0 && chunks == 0)) {
    raise(ErrorKind::Corruption, "{}: {} has {} chunks of {} values, its documents have {}", path, field.name,
          field.chunks.size(), with_commas(field.chunk_values), with_commas(values));
  }
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::uint64_t count = std::min(field.chunk_values, values - chunk * field.chunk_values);
    const std::uint64_t bytes = checked_mul(count, field.stored.bytes, path.c_str());
    const std::uint64_t begin = field.chunks[chunk];
    if (begin > file.bytes() || bytes > file.bytes() - begin) {
      raise(ErrorKind::Corruption, "{}: {} bytes of {} at byte {} of {}", path, with_commas(bytes), field.name,
            with_commas(begin), with_commas(file.bytes()));
    }
    const std::uint64_t size = std::min(bytes, kSampleBytes);
    if (chunk == 0) add_sample(file, begin, size, digest);
    if (chunk + 1 == chunks) add_sample(file, begin + bytes - size, size, digest);
  }
}

void check_types(const FieldArrays& arrays, const std::string& path) {
  const auto check = [&](const FieldArray& field, std::string_view kinds) {
    const bool is_cast = field.stored == field.given || find_cast_run(field.stored, field.given) != nullptr;
    if (kinds.find(field.stored.kind) != std::string_view::npos && field.stored.bytes <= 8 && is_cast) return;
    raise(ErrorKind::InvalidArgument, "{}: {} is {}, given out as {}: no cell has it", path, field.name,
          field.stored.name(), field.given.name());
  };
  check(arrays.genes, "iu");
  check(arrays.values, "biuf");
  if (arrays.genes.given == ScalarType{'u', 4}) return;
  raise(ErrorKind::InvalidArgument, "{}: {} are given out as {}, expected uint32", path, arrays.genes.name,
        arrays.genes.given.name());
}

bool is_code(std::uint32_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4;
}

void check_columns(const ValueTypes& types, const ShardColumns& columns, std::uint64_t entries,
                   const ForeignFile& file) {
  if (columns.arrays.size() != types.size() || columns.categories.size() != types.size()) {
    raise(ErrorKind::InvalidArgument, "{}: {} columns for {} types", file.path(), columns.arrays.size(), types.size());
  }
  for (std::size_t c = 0; c < types.size(); ++c) {
    const ColumnArray& column = columns.arrays[c];
    const bool is_category = types[c].is_category;
    const bool fits = is_category ? is_code(column.value_bytes) : column.value_bytes == types[c].bytes();
    if (!fits || is_category != (columns.categories[c] != nullptr)) {
      raise(ErrorKind::InvalidArgument, "{}: column {} has values of {} bytes, and {} categories", file.path(),
            excerpt(types[c].name), column.value_bytes, columns.categories[c] ? "has" : "no");
    }
    const std::uint64_t bytes = checked_mul(entries, column.value_bytes, file.path().c_str());
    const std::uint64_t there = column.kept ? column.kept->size() : file.bytes();
    if (column.offset <= there && bytes <= there - column.offset) continue;
    raise(ErrorKind::Corruption, "{}: {} bytes of column {} at byte {} of {}", file.path(), with_commas(bytes),
          excerpt(types[c].name), with_commas(column.offset), with_commas(there));
  }
}

}  // namespace

DatasetPtr open_field_arrays(FieldArraysFile opened) {
  const ForeignFile file(opened.location, opened.stamp);
  const FieldArrays& arrays = opened.arrays;
  check_types(arrays, file.path());
  check_starts(arrays.starts, file.path());
  auto dataset = std::make_shared<Dataset>();
  dataset->schema = Schema::parse(fmt::format(R"([["{}","{}"],["{}","{}"]])", arrays.genes.name,
                                              arrays.genes.given.str(), arrays.values.name, arrays.values.given.str()));
  dataset->stored_record_bytes = dataset->schema.record_bytes();
  const std::uint64_t records = arrays.starts.back();
  const std::uint64_t documents = arrays.starts.size() - 1;
  Digest digest;
  digest.update(fmt::format("penstock {} {}\n", opened.format, dataset->schema.json()));
  digest.update_u64(file.bytes());
  digest.update(std::as_bytes(std::span(arrays.starts)));
  check_field(arrays.genes, records, file, digest);
  check_field(arrays.values, records, file, digest);
  digest.update(opened.features_fingerprint);
  if (opened.shard_columns) check_columns(opened.columns, *opened.shard_columns, documents, file);

  Shard shard;
  shard.name = file.path();
  shard.records = records;
  shard.spans = shard.entries = documents;
  shard.stream = shard.columns = file.file();
  shard.shard_columns = std::move(opened.shard_columns);
  shard.arrays = std::make_shared<const FieldArrays>(std::move(opened.arrays));
  dataset->shards.push_back(std::move(shard));
  dataset->path = file.path();
  dataset->kind = std::move(opened.format);
  dataset->mode = kModeStream;
  dataset->spans = SpanKind::Arrays;
  dataset->columns = std::move(opened.columns);
  dataset->codec_json = "null";
  dataset->tokenizer_json = "null";
  dataset->fingerprint = digest.hex();
  dataset->features_fingerprint = std::move(opened.features_fingerprint);
  dataset->add_store(opened.location.store);
  dataset->finish();
  return dataset;
}

}  // namespace penstock::layout
