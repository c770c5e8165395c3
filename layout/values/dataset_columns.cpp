#include "layout/values/dataset_columns.h"

#include "core/base/checked.h"
#include "layout/reading/reads.h"
#include "layout/values/category_union.h"

#include <cstring>
#include <utility>

namespace penstock::layout {

DatasetColumns::DatasetColumns(const std::string& path, const ValueTypes& types, const std::vector<Shard>& shards)
    : shards_(shards), types_(types), categories_(types_.size()), entry_starts_{0} {
  std::vector<CategoryUnion> unions(types_.size());
  places_.reserve(shards.size() * types_.size());
  for (const Shard& shard : shards) {
    entry_starts_.push_back(checked_add(entry_starts_.back(), shard.entries, path.c_str()));
    const std::vector<ColumnArray>& arrays = shard.shard_columns->arrays;
    std::vector<ColumnPlace> places;
    if (arrays.empty()) places = column_places(types_, *shard.shard_columns, shard.entries);
    for (const ColumnArray& array : arrays) places.push_back({array.offset, array.value_bytes});
    for (std::size_t c = 0; c < types_.size(); ++c) {
      Placed& placed = places_.emplace_back();
      placed.place = places[c];
      if (!arrays.empty() && arrays[c].kept) placed.kept = arrays[c].kept->data() + arrays[c].offset;
      if (types_[c].is_category) placed.codes = unions[c].add(shard.shard_columns->categories[c]);
    }
  }
  for (std::size_t c = 0; c < types_.size(); ++c) categories_[c] = unions[c].names();
  if (entry_starts_.back() > INT64_MAX) raise(ErrorKind::Corruption, "{}: its entries do not fit 63 bits", path);
}

void DatasetColumns::raise_code(std::uint64_t shard, std::size_t column, std::int64_t code) const {
  raise(ErrorKind::Corruption, "{}: column {} has the code {}, the shard has {} categories",
        shards_[shard].columns.path(), excerpt(types_[column].name), code,
        places_[shard * types_.size() + column].codes->size());
}

void DatasetColumns::give(std::uint64_t shard, std::size_t column, const std::byte* stored, std::uint64_t count,
                          std::byte* out) const {
  const Placed& placed = places_[shard * types_.size() + column];
  if (!placed.codes) {
    std::memcpy(out, stored, count * placed.place.value_bytes);
    return;
  }
  const UnionCodes& codes = *placed.codes;
  const auto translate = [&]<typename T>(T) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::int64_t code = load_at<T>(stored, i);
      if (code < -1 || code >= static_cast<std::int64_t>(codes.size())) raise_code(shard, column, code);
      const std::int32_t given = code < 0 ? -1 : codes[static_cast<std::size_t>(code)];
      std::memcpy(out + i * sizeof(given), &given, sizeof(given));
    }
  };
  switch (placed.place.value_bytes) {
    case 1: return translate(std::int8_t{});
    case 2: return translate(std::int16_t{});
    default: return translate(std::int32_t{});
  }
}

}  // namespace penstock::layout
