// BatchFormat: how rows of one source become the arrays of a batch. Data but for its making; any thread.
#pragma once

#include "core/columns/column.h"
#include "core/columns/column_spec.h"
#include "core/columns/fill_in_the_middle.h"
#include "core/rows/row_slice.h"
#include "core/rows/source.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace penstock {

/// No machine addresses more; sums of two such sizes, aligned, fit 64 bits.
inline constexpr std::uint64_t kMostBatchBytes = std::uint64_t{1} << 56;

/// The records as read, then the columns that were asked for.
struct BatchFormat {
  std::shared_ptr<const Source> source;
  RowShape shape;
  std::uint64_t stored_record_bytes = 0;
  std::vector<ColumnSpec> specs;
  std::vector<std::shared_ptr<const Column>> columns;  // of the specs, in their order
  Parts wanted = Parts::All;                           // what is read of each row
  std::shared_ptr<const RowSlice> slice;               // the part of each row that columns have; null: all of it
  std::shared_ptr<const FillInTheMiddle> middle;       // rearranges each row before columns are made; null: none does
  // Bytes in memory: what lies before record 0 of the first fixed row, and from one fixed row to the next.
  std::uint64_t lead_bytes = 0;
  std::uint64_t row_bytes = 0;

  /// Resolves `specs` for the source; what they need is wanted besides `wanted` and after the chunks of `slice`.
  /// Throws InvalidArgument for rows that no memory holds, and as make_column and FillInTheMiddle do.
  BatchFormat(std::shared_ptr<const Source> source, std::vector<ColumnSpec> specs, Parts wanted = Parts::All,
              const std::shared_ptr<const RowSlice>& slice = nullptr,
              const std::optional<FillInTheMiddleSpec>& middle = {});

  /// The part of each row that is read; null: all of it.
  [[nodiscard]] const RowSlice* read_slice() const noexcept { return middle ? nullptr : slice.get(); }
  /// Whether rows of `other` fit into a batch of this format.
  [[nodiscard]] bool holds(const BatchFormat& other) const;
  /// Whether its rows are arrays of the same records: `records` shows both.
  [[nodiscard]] bool has_records_of(const BatchFormat& other) const noexcept;
};

using BatchFormats = std::vector<BatchFormat>;  // by source number

/// Formats of sources whose rows may meet in one batch: where rows have one length and columns of one shape, all get
/// room for the largest, whatever else is in their records. Throws InvalidArgument where a column is of one field, but
/// that is of another kind or has other axes in the second source.
BatchFormats join(BatchFormats formats);

}  // namespace penstock
