// LateArray: a field's array of a ready batch, for what is asked for after the fact.
//
// One thread at a time; it needs the batch while it lives.
#pragma once

#include "core/batch/batch.h"
#include "core/columns/column.h"
#include "core/columns/column_spec.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace penstock {

class LateArray {
 public:
  /// Throws as make_column and Column::shape do.
  LateArray(const Batch& batch, const FieldSpec& spec);

  [[nodiscard]] const ArrayShape& shape() const noexcept { return shape_; }
  /// Writes shape().bytes. Throws as Column::fill_row does.
  void write(std::byte* out) const;

 private:
  const Batch& batch_;
  std::vector<std::shared_ptr<const Column>> columns_;  // by source number; null where no row is of it
  ArrayShape shape_;
};

}  // namespace penstock
