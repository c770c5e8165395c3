// IdsInLine: the token ids of a JSON line, read several times as fast as simdjson does, which reads the rest of the
// line.
//
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::text {

class IdsInLine {
 public:
  /// Nothing is found of a `column` with characters that JSON escapes, or that begins as what stands behind a string.
  explicit IdsInLine(std::string_view column);

  /// Bytes [begin, end) of a line: all between the brackets of the column's list.
  struct Place {
    std::size_t begin;
    std::size_t end;
  };

  /// Appends the ids of a line to `ids`: if the line without `Place` is JSON, its outermost object has this column, and
  /// what was taken out are these integers. Nothing where that is not plain: then `ids` may have got some all the same.
  /// `behind`: bytes that may be read behind the line.
  [[nodiscard]] std::optional<Place> read(std::string_view line, std::size_t behind,
                                          std::vector<std::int64_t>& ids) const;

 private:
  std::string key_;  // in quotation marks
};

}  // namespace penstock::text
