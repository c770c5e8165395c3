#include "tests/native/layout/model.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace penstock::testing {
namespace {

using layout::SpanKind;

template <typename T>
void append(std::vector<std::byte>& out, T value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> compact_index(const ModelShard& shard, std::string& data) {
  std::vector<std::byte> index;
  std::uint64_t record = 0;
  for (const ModelSpan& span : shard.spans) {
    append(index, record);
    append<std::uint64_t>(index, data.size());
    record += span.records;
    data += span.entry;
  }
  append(index, record);
  append<std::uint64_t>(index, data.size());
  return index;
}

std::vector<std::byte> offset_index(const ModelShard& shard, std::string& data) {
  std::vector<std::byte> index;
  for (const std::string& entry : shard.entries) {
    append<std::uint64_t>(index, data.size());
    data += entry;
  }
  append<std::uint64_t>(index, data.size());
  return index;
}

std::vector<std::byte> directory_of(const std::vector<std::uint64_t>& owners, std::uint64_t spans) {
  std::vector<std::byte> directory;
  for (std::uint64_t record = 0; record < owners.size(); record += layout::kDirectoryStride)
    append(directory, owners[record]);
  append(directory, spans);
  return directory;
}

File put(const std::string& path, const std::vector<std::byte>& bytes) {
  write_file(path, bytes);
  return {path, bytes.size(), local(path).store.get()};
}

}  // namespace

ModelShard shard_of(const std::vector<std::uint64_t>& lengths) {
  ModelShard shard;
  for (const std::uint64_t length : lengths) {
    const std::size_t number = shard.spans.size();
    shard.spans.push_back({length, "entry " + std::to_string(number) + std::string(number % 3, '!')});
  }
  return shard;
}

Model some_documents() {
  return {SpanKind::Compact, {shard_of({3, 0, 9, 2, 4, 1, 25}), {}, shard_of({0, 5, 5, 5, 10})}};
}

std::uint64_t ModelShard::records() const {
  const auto add = [](std::uint64_t sum, const ModelSpan& span) { return sum + span.records; };
  return ids.empty() ? std::accumulate(spans.begin(), spans.end(), std::uint64_t{0}, add) : ids.size();
}

Model::Model(SpanKind kind, std::vector<ModelShard> shards, std::uint64_t token_bytes)
    : kind_(kind), shards_(std::move(shards)), token_bytes_(token_bytes) {
  auto dataset = std::make_shared<layout::Dataset>();
  dataset->path = folder_.path();
  dataset->kind = "penstock";
  dataset->mode = kind == SpanKind::None ? "tokens" : kind == SpanKind::Opaque ? "opaque" : "stream";
  dataset->spans = kind;
  if (kind != SpanKind::Opaque) dataset->schema = Schema::parse(fmt::format(R"([["token","<u{}"]])", token_bytes));
  dataset->stored_record_bytes = kind == SpanKind::Opaque ? 0 : token_bytes + (kind == SpanKind::Ids ? 4 : 0);
  dataset->codec_json = kind == SpanKind::None ? "null" : R"({"name":"raw"})";
  dataset->tokenizer_json = "null";
  dataset->fingerprint = "00";
  dataset->stores = {local("").store};
  for (const ModelShard& shard : shards_) owners_.push_back(find_owners(shard));
  for (std::uint64_t i = 0; i < shards_.size(); ++i) write_shard(*dataset, i);
  dataset->finish();
  dataset_ = dataset;
}

void Model::write_shard(layout::Dataset& dataset, std::uint64_t number) const {
  const ModelShard& from = shards_[number];
  layout::Shard& to = dataset.shards.emplace_back();
  to.name = "0000" + std::to_string(number);
  const std::string folder = folder_.path(to.name) + "/";
  if (kind_ != SpanKind::Opaque) to.records = from.records();
  std::vector<std::byte> stream;
  for (std::uint64_t i = 0; i < to.records; ++i) append_record(stream, {number, i});
  if (kind_ != SpanKind::Opaque) to.stream = put(folder + "stream.bin", stream);
  if (kind_ == SpanKind::None) return;
  std::string data;
  const bool compact = kind_ == SpanKind::Compact;
  to.index = put(folder + "metadata.index", compact ? compact_index(from, data) : offset_index(from, data));
  to.spans = compact ? from.spans.size() : from.entries.size();
  to.entries = to.spans;
  to.data = put(folder + "metadata.bin", bytes_of(std::vector<char>(data.begin(), data.end())));
  if (compact) to.directory = put(folder + "metadata.directory", directory_of(owners_[number], to.spans));
}

std::vector<std::uint64_t> Model::find_owners(const ModelShard& shard) const {
  if (kind_ == SpanKind::Ids) return {shard.ids.begin(), shard.ids.end()};
  std::vector<std::uint64_t> result;
  for (std::uint64_t i = 0; i < shard.spans.size(); ++i) result.insert(result.end(), shard.spans[i].records, i);
  return result;
}

Model::Place Model::place(std::uint64_t i) const {
  std::uint64_t shard = 0;
  for (; i >= owners_[shard].size(); ++shard) i -= owners_[shard].size();
  return {shard, i};
}

std::vector<std::byte> Model::record(std::uint64_t i) const {
  std::vector<std::byte> result;
  append_record(result, place(i));
  return result;
}

void Model::append_record(std::vector<std::byte>& out, const Place& at) const {
  const std::uint64_t token = at.shard * 1000 + at.record;
  if (token_bytes_ == 2) {
    append(out, static_cast<std::uint16_t>(token));
  } else {
    append(out, static_cast<std::uint32_t>(token * 100'003));
  }
  if (kind_ == SpanKind::Ids) append(out, shards_[at.shard].ids[at.record]);
}

std::vector<Span> Model::spans(std::uint64_t begin, std::uint64_t end) const {
  std::vector<Span> result;
  if (kind_ == SpanKind::None) return result;
  for (std::uint64_t i = begin; i < end; ++i) {
    const Place at = place(i);
    const std::vector<std::uint64_t>& owner = owners_[at.shard];
    const std::uint64_t records = owner.size();
    const bool first_of_span = at.record == 0 || owner[at.record] != owner[at.record - 1];
    if (i == begin || first_of_span) {
      std::uint64_t offset = 0;
      while (offset < at.record && owner[at.record - offset - 1] == owner[at.record]) ++offset;
      Span span;
      span.start = i - begin;
      span.begins = first_of_span;
      span.offset = kind_ == SpanKind::Ids ? -1 : static_cast<std::int64_t>(offset);
      span.shard = static_cast<std::uint32_t>(at.shard);
      span.entry = owner[at.record];
      result.push_back(span);
    }
    result.back().stop = i + 1 - begin;
    result.back().ends = at.record + 1 == records || owner[at.record + 1] != owner[at.record];
  }
  return result;
}

void expect_row(const Model& model, const Source& source, const Driven& driven, std::uint64_t begin,
                std::uint64_t end) {
  ASSERT_EQ(driven.row.length, end - begin);
  const std::span<const std::byte> records = driven.records(source);
  const std::uint64_t size = source.info().stored_record_bytes;
  for (std::uint64_t i = begin; i < end; ++i) {
    ASSERT_EQ(std::memcmp(&records[(i - begin) * size], model.record(i).data(), size), 0) << "record " << i;
  }
  const std::vector<Span> wanted = model.spans(begin, end);
  ASSERT_EQ(driven.row.spans.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Span& span = driven.row.spans[i];
    ASSERT_EQ(place_of(span), place_of(wanted[i])) << "span " << i << " of records " << begin << " to " << end;
    const ModelShard& shard = model.shards()[span.shard];
    ASSERT_NE(span.raw, nullptr);
    ASSERT_EQ(entry_of(span), shard.ids.empty() ? shard.spans[span.entry].entry : shard.entries[span.entry]);
  }
}

void expect_windows(const Model& model, std::uint64_t window, std::uint64_t lookahead) {
  SCOPED_TRACE(::testing::Message() << "window " << window << ", lookahead " << lookahead);
  const auto source = layout::make_windows(model.dataset(), window, lookahead);
  ASSERT_EQ(source->info().size, (model.records() - lookahead) / window);
  for (std::uint64_t i = 0; i < source->info().size && !::testing::Test::HasFatalFailure(); ++i) {
    const Driven row = driven(*source, i);
    expect_row(model, *source, row, i * window, i * window + window + lookahead);
    const RowShape shape = source->info().shape;
    const std::uint64_t beside = (shape.lead + shape.tail) * source->info().stored_record_bytes;
    const std::uint64_t row_bytes = row.row.length * source->info().stored_record_bytes;
    ASSERT_GE(row.bytes_read("stream.bin"), row_bytes);
    ASSERT_LE(row.bytes_read("stream.bin"), row_bytes + beside) << "records that nobody uses were read";
  }
}

void expect_all_windows(const Model& model) {
  const std::uint64_t records = model.records();
  for (std::uint64_t lookahead = 0; lookahead <= 2; ++lookahead) {
    for (std::uint64_t window = 1; window + lookahead <= records; ++window) {
      expect_windows(model, window, lookahead);
      const auto keeping = layout::make_windows(model.dataset(), window, lookahead);
      if (keeping->info().keeps) keeping->info().keeps->grant(1 << 20);
      for (std::uint64_t i = 0; i < keeping->info().size && !::testing::Test::HasFatalFailure(); ++i) {
        expect_row(model, *keeping, driven(*keeping, i), i * window, i * window + window + lookahead);
      }
    }
    ASSERT_THROW(layout::make_windows(model.dataset(), records + 1 - lookahead, lookahead), Error);
  }
}

}  // namespace penstock::testing
