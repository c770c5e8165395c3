// Columns of documents on disk: their types, and where each lies in a shard's columns.bin.
//
// columns.bin holds a shard's columns one after the other, each from a multiple of 64 bytes on: the value of its first
// entry, of its second, …. Names of a category are stored as signed codes, as small as the shard's own table of names
// allows. What a reader gives out are codes of the dataset's table (layout/values/dataset_columns.h). Pure functions.
#pragma once

#include "core/base/digest.h"
#include "core/rows/value_type.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::layout {

/// The names that codes of a category stand for.
using Categories = std::vector<std::string>;
using CategoriesPtr = std::shared_ptr<const Categories>;

/// A column of a file of another format: the values of all documents end to end.
struct ColumnArray {
  std::uint64_t offset = 0;  // in the shard's file of columns, or of `kept`
  std::uint32_t value_bytes = 0;
  std::shared_ptr<const std::vector<std::byte>> kept = {};  // where the file has them otherwise
};

/// What a shard says of its columns, in the order of the format's.
struct ShardColumns {
  std::vector<DigestBytes> digests;       // of the stored values of each
  std::vector<CategoriesPtr> categories;  // of each; null where it is none
  std::vector<ColumnArray> arrays = {};   // of another format's; ours lie as column_places() says
};

/// Parses [["plate","category"],["score","<f4"],["X_pca","<f4",[50]]]. Throws InvalidArgument: a name that is empty,
/// has a NUL, more than 255 bytes or is there twice; a kind other than b i u f; more than 1 MiB a value; no column.
ValueTypes parse_column_types(std::string_view json);
/// That text, without spaces: equal types give equal texts.
std::string column_types_json(const ValueTypes& types);

/// Bytes of a stored code, for this many categories: 1, 2 or 4.
std::uint32_t code_bytes(std::uint64_t categories) noexcept;

/// Throws InvalidArgument naming the column unless names differ from each other and have less than 64 KiB each.
void check_categories(std::string_view column, const Categories& categories);

/// Bytes of a name of a category in a manifest's JSON, with its quotes and a comma.
std::uint64_t category_json_bytes(std::string_view name) noexcept;

/// Throws InvalidArgument naming the column where all names of categories have more such bytes than a manifest has room
/// for.
void check_categories_room(std::string_view column, std::uint64_t bytes);

/// check_categories() of each column that is a category, and check_categories_room() of all of them.
void check_categories(const ValueTypes& types, const std::vector<Categories>& categories);

/// Where a column lies in its shard's columns.bin.
struct ColumnPlace {
  std::uint64_t offset = 0;
  std::uint64_t value_bytes = 0;  // as stored
};

/// Of all columns of a shard of `entries` entries, whose `shard` says its categories; at the end one that begins where
/// the file ends. Throws Corruption where that is beyond 63 bits.
std::vector<ColumnPlace> column_places(const ValueTypes& types, const ShardColumns& shard, std::uint64_t entries);

}  // namespace penstock::layout
