// BoundCondition: a condition on the columns of a dataset: types agree, names of categories are codes.
//
// Immutable; any thread.
#pragma once

#include "layout/dataset.h"
#include "layout/where/condition.h"
#include "layout/where/value_tests.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::layout {

/// Results of a test for each code of a dataset's category, null's first: truths[code + 1].
using Truths = std::vector<std::uint8_t>;
/// Places of a category's names in the order of the names of two, null's first, which is 0.
using Ranks = std::vector<std::int32_t>;

struct BoundCondition {
  Condition::Kind kind = Condition::Kind::Constant;
  std::vector<BoundCondition> parts = {};  // of And and Or
  std::size_t column = 0;
  std::size_t other = 0;
  // One of these; without any, `is_always` is the truth of all documents.
  ValueTest values = {};
  PairTest pairs = {};
  std::shared_ptr<const Truths> codes = {};
  std::shared_ptr<const Ranks> ranks = {};  // of `column`, and of `other`
  std::shared_ptr<const Ranks> other_ranks = {};
  Comparison comparison = Comparison::Equal;
  bool is_always = false;
  std::vector<std::string> texts = {};  // that `column`, a category, is compared with by =, <> or in
};

/// Its documents have metadata of their own, which conditions do not know.
bool has_entries(const Dataset& dataset);

/// `text` is what the condition was parsed of. Throws InvalidArgument, which says where in it: a column that is not
/// there, one of arrays, types that do not compare.
BoundCondition bind_condition(const Dataset& dataset, const Condition& condition, std::string_view text);

}  // namespace penstock::layout
