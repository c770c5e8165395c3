// ColumnMaker: makes a column of which core knows nothing but what Column says: what layout/cells makes of a cell.
//
// Immutable; any thread.
#pragma once

#include "core/columns/column.h"
#include "core/rows/source.h"

#include <memory>

namespace penstock {

class ColumnMaker {
 public:
  virtual ~ColumnMaker() = default;

  /// The column of rows of this source. Throws InvalidArgument if its rows have no such column.
  [[nodiscard]] virtual std::shared_ptr<const Column> make(const SourceInfo& source) const = 0;
  /// What of a row the column needs.
  [[nodiscard]] virtual Parts parts() const noexcept = 0;
};

}  // namespace penstock
