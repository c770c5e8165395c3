// Metadata that is no JSON line: columns that the reader knows, and rows of Arrow, as Python's json writes them. Any
// thread.
#pragma once

#include "text/written.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::text {

/// Entry i ends before bytes[ends[i]], and begins where the one before ended.
struct Entries {
  ByteVector bytes;
  std::vector<std::uint64_t> ends;
};

/// `prefix`, a number in decimals, `suffix`: an entry for each number.
[[nodiscard]] Entries fill(std::string_view prefix, std::span<const std::uint64_t> numbers, std::string_view suffix);

enum class ArrowKind { Utf8, LargeUtf8, Int, Uint, Float, Bool };

/// A column of Arrow: its buffers, of which the first `offset` values are not meant. Aligned or not.
struct ArrowColumn {
  std::string name;  // UTF-8
  ArrowKind kind = ArrowKind::Utf8;
  std::uint64_t itemsize = 0;  // 1, 2, 4 or 8 of integers, 4 or 8 of floats
  std::optional<std::string_view> validity;
  std::string_view offsets;  // of strings
  std::string_view data;
  std::uint64_t offset = 0;
};

struct JsonRows {
  Entries sorted;   // json.dumps(row, sort_keys=True)
  Entries entries;  // json.dumps(row, ensure_ascii=False, separators=(",", ":"))
};

/// Each of `rows` rows as an object of JSON, its columns in their order. None where Python has to do it: a float that
/// is not finite, a string that is no UTF-8. Throws InvalidArgument for a buffer that is too short, a size that there
/// is not, and a name that stands twice or is no UTF-8.
[[nodiscard]] std::optional<JsonRows> rows_json(const std::vector<ArrowColumn>& columns, std::uint64_t rows);

}  // namespace penstock::text
