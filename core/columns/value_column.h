// ValueColumn: a typed value of each document as an array of the batch, [rows, dims…].
//
// For sources whose rows are one document each. Padding is 0, in categories -1.
#pragma once

#include "core/columns/column.h"
#include "core/columns/column_spec.h"
#include "core/rows/value_type.h"

#include <cstddef>
#include <cstdint>

namespace penstock {

class ValueColumn final : public Column {
 public:
  /// Throws InvalidArgument: the source has no such value, or several documents a row.
  ValueColumn(const ValueSpec& spec, const SourceInfo& source);

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override;
  void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const override;
  void fill_padding(const BatchShape& batch, std::byte* out) const override;

 private:
  ValueType type_;
  std::size_t number_ = 0;  // among the source's values
};

/// Writes what `rows` rows of padding have.
void fill_value_padding(const ValueType& type, std::uint64_t rows, std::byte* out) noexcept;

}  // namespace penstock
