// ValueType: the type of one column of documents: a typed value that each has beside its records and its entry.
//
// Values; any thread.
#pragma once

#include "core/rows/scalar_type.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

struct ValueType {
  std::string name;
  ScalarType type;                  // as it is given out; of a category <i4: codes of names, -1 where there is none
  std::vector<std::uint64_t> dims;  // of one value; empty for a scalar
  bool is_category = false;

  bool operator==(const ValueType&) const = default;
  /// Of one value.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t product = type.bytes;
    for (const std::uint64_t dim : dims) product *= dim;
    return product;
  }
};

using ValueTypes = std::vector<ValueType>;

}  // namespace penstock
