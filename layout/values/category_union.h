// CategoryUnion: one table of names for the tables of many shards, in the order of their first appearance.
//
// One thread at a time.
#pragma once

#include "layout/values/column_types.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace penstock::layout {

/// Of each name of a shard's table its number in the union.
using UnionCodes = std::vector<std::int32_t>;

class CategoryUnion {
 public:
  /// Takes in the table, which stays where it is. The same pointer gives the same codes. Throws Corruption for more
  /// names than int32 counts.
  std::shared_ptr<const UnionCodes> add(const CategoriesPtr& table);

  [[nodiscard]] const Categories& names() const noexcept { return names_; }
  /// Whether all tables so far are equal: then each is the union.
  [[nodiscard]] bool is_one_table() const noexcept { return is_one_; }

 private:
  Categories names_;
  bool is_one_ = true;
  std::unordered_map<std::string, std::int32_t> numbers_;
  std::map<const Categories*, std::shared_ptr<const UnionCodes>> known_;
};

}  // namespace penstock::layout
