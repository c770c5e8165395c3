// PerSpanColumn: the place of an array that is filled once the batch is ready: a value of each span, spread over its
// records (core/batch/span_values.h). Its places are those of a RecordArray; padding has the fill value.
#pragma once

#include "core/columns/column.h"
#include "core/columns/column_spec.h"
#include "core/columns/record_array.h"

#include <cstddef>
#include <cstdint>

namespace penstock {

class PerSpanColumn final : public Column {
 public:
  /// Throws InvalidArgument: a type that is no bool, integer or float of 1, 2, 4 or 8 bytes; a row without records.
  PerSpanColumn(PerSpanSpec spec, const SourceInfo& source);

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override;
  void fill_row(const Row& /*row*/, const BatchShape& /*batch*/, std::byte* /*out*/) const override {}
  void fill_padding(const BatchShape& batch, std::byte* out) const override;

 private:
  PerSpanSpec spec_;
  RecordArray places_;
};

}  // namespace penstock
