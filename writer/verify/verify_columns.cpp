#include "writer/verify/verify_columns.h"

#include "core/base/error.h"
#include "layout/reading/reads.h"

#include <algorithm>
#include <utility>

namespace penstock::writer {

ColumnsCheck::ColumnsCheck(std::string path, const layout::Format& format, const layout::ShardInfo& shard,
                           const TellProblem& tell)
    : path_(std::move(path)),
      format_(format),
      shard_(shard),
      tell_(tell),
      places_(layout::column_places(format.columns, *shard.columns, shard.entries)),
      digests_(format.columns.size()),
      codes_fine_(format.columns.size(), true) {}

// Between two columns there are zeros, which mean nothing.
void ColumnsCheck::update(std::span<const std::byte> part) {
  while (!part.empty() && column_ < format_.columns.size()) {
    const layout::ColumnPlace& place = places_[column_];
    const std::uint64_t end = place.offset + shard_.entries * place.value_bytes;
    if (at_ >= end) {
      ++column_;
      held_.clear();
      continue;
    }
    const bool is_inside = at_ >= place.offset;
    const std::uint64_t bytes = std::min<std::uint64_t>(part.size(), (is_inside ? end : place.offset) - at_);
    if (is_inside) take(part.first(bytes));
    part = part.subspan(bytes);
    at_ += bytes;
  }
}

void ColumnsCheck::take(std::span<const std::byte> part) {
  digests_[column_].update(part);
  if (format_.columns[column_].is_category && codes_fine_[column_]) take_codes(part);
}

void ColumnsCheck::take_codes(std::span<const std::byte> part) {
  const std::uint64_t bytes = places_[column_].value_bytes;
  held_.insert(held_.end(), part.begin(), part.end());
  const std::size_t whole = held_.size() / bytes * bytes;
  const std::span<const std::byte> codes = std::span(held_).first(whole);
  switch (bytes) {
    case 1: check_codes<std::int8_t>(codes); break;
    case 2: check_codes<std::int16_t>(codes); break;
    default: check_codes<std::int32_t>(codes); break;
  }
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(whole));
}

template <typename T>
void ColumnsCheck::check_codes(std::span<const std::byte> codes) {
  const auto categories = static_cast<std::int64_t>(shard_.columns->categories[column_]->size());
  for (std::size_t i = 0; i < codes.size() / sizeof(T); ++i) {
    const std::int64_t code = layout::load_at<T>(codes.data(), i);
    if (code >= -1 && code < categories) continue;
    codes_fine_[column_] = false;
    return tell_(path_, at_ + i * sizeof(T),
                 fmt::format("column {} has the code {}, there are {} categories",
                             excerpt(format_.columns[column_].name), code, categories));
  }
}

void ColumnsCheck::finish() {
  for (std::size_t c = 0; c < digests_.size(); ++c) {
    compare_digests(path_, "column " + excerpt(format_.columns[c].name), digests_[c].bytes(),
                    shard_.columns->digests[c], tell_);
  }
}

}  // namespace penstock::writer
