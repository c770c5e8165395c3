#include "writer/shards/column_reader.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "writer/verify/verify_columns.h"

#include <algorithm>
#include <cstring>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kReaderBufferBytes = 64U << 10;

std::int32_t load_code(std::span<const std::byte> stored) {
  const auto load = [&]<typename T>(T code) {
    std::memcpy(&code, stored.data(), sizeof(code));
    return static_cast<std::int32_t>(code);
  };
  switch (stored.size()) {
    case 1: return load(std::int8_t{});
    case 2: return load(std::int16_t{});
    default: return load(std::int32_t{});
  }
}

void check_digests(const std::string& file, std::uint64_t bytes, const layout::Format& format,
                   const layout::ShardInfo& shard) {
  const TellProblem refuse = [](const std::string& path, std::uint64_t offset, const std::string& message) {
    raise(ErrorKind::Corruption, "{}: at byte {}: {}", path, with_commas(offset), message);
  };
  ColumnsCheck check(file, format, shard, refuse);
  InputFile input(file, bytes);
  input.take(bytes, [&](std::span<const std::byte> part) { check.update(part); });
  check.finish();
}

}  // namespace

ColumnReader::ColumnReader(const std::string& path, const layout::Format& format, const layout::ShardInfo& shard)
    : types_(format.columns), entries_(shard.entries), columns_(types_.size()), categories_(types_.size()) {
  if (!format.has_columns()) return;
  const std::vector<layout::ColumnPlace> places = layout::column_places(types_, *shard.columns, shard.entries);
  const std::string file = path + "/" + layout::kColumnsName;
  check_digests(file, places.back().offset, format, shard);
  file_.emplace(file, places.back().offset);
  for (std::size_t c = 0; c < types_.size(); ++c) {
    columns_[c].place = places[c];
    if (types_[c].is_category) categories_[c] = *shard.columns->categories[c];
  }
  values_.resize(types_.size());
}

std::span<const std::byte> ColumnReader::value(std::size_t c, std::uint64_t entry) {
  Column& column = columns_[c];
  const std::uint64_t bytes = column.place.value_bytes;
  if (entry < column.first || entry >= column.first + column.count) {
    column.first = entry;
    column.count = std::min(entries_ - entry, std::max<std::uint64_t>(1, kReaderBufferBytes / bytes));
    column.buffer.resize(column.count * bytes);
    file_->read_at(column.place.offset + entry * bytes, column.buffer);
  }
  return std::span(column.buffer).subspan((entry - column.first) * bytes, bytes);
}

const ColumnValues& ColumnReader::values(std::uint64_t entry) {
  for (std::size_t c = 0; c < types_.size(); ++c) {
    values_[c] = value(c, entry);
    if (!types_[c].is_category) continue;
    std::int32_t& code = columns_[c].code = load_code(values_[c]);
    if (code < -1 || code >= static_cast<std::int32_t>(categories_[c].size())) {
      raise(ErrorKind::Corruption, "{}: column {} has the code {} at entry {}, the shard has {} categories",
            file_->path(), excerpt(types_[c].name), code, with_commas(entry), categories_[c].size());
    }
    values_[c] = std::as_bytes(std::span(&code, 1));
  }
  return values_;
}

}  // namespace penstock::writer
