// LeafColumn: the values of one field, cast to the type that a training step wants.
#pragma once

#include "core/columns/column.h"
#include "core/columns/column_spec.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock {

/// The leaf of the source's schema called `field`. Throws InvalidArgument naming the field if there is none.
const Leaf& find_leaf(const SourceInfo& source, const std::string& field);

/// Makes -100 of `count` labels: signed integers of `item_bytes`.
void fill_ignored_labels(std::byte* out, std::uint64_t count, std::uint32_t item_bytes);

class LeafColumn : public Column {
 public:
  /// See make_column.
  LeafColumn(FieldSpec spec, const SourceInfo& source, bool end_to_end);

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override;
  void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const override;
  void fill_padding(const BatchShape& batch, std::byte* out) const override;

  /// Writes records [first, first + count) of the row to `out`. Throws InvalidArgument, which names the observation,
  /// for a value that the type does not hold.
  void cast(const Row& row, std::uint64_t first, std::uint64_t count, std::byte* out) const;

 private:
  FieldSpec spec_;
  Leaf leaf_;
  std::uint64_t stride_bytes_;     // from one record's value to the next …
  std::uint64_t apart_bytes_ = 0;  // … and where fields are apart, what lies before this one for each record
  std::uint64_t record_bytes_;     // of the array
  bool ragged_;
  bool in_place_;
};

}  // namespace penstock
