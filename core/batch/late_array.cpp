#include "core/batch/late_array.h"

#include "core/columns/column_factory.h"

#include <cstdint>

namespace penstock {

LateArray::LateArray(const Batch& batch, const FieldSpec& spec) : batch_(batch), columns_(batch.formats->size()) {
  const auto make = [&](const BatchFormat& format) {
    auto& column = columns_[static_cast<std::size_t>(&format - batch.formats->data())];
    if (!column) column = make_column(spec, format.source->info(), false);
    return column;
  };
  shape_ = make(*batch.format)->shape(batch.shape());
  for (std::uint64_t i = 0; i < batch.plan.valid; ++i) make(batch.row_format(i));
}

void LateArray::write(std::byte* out) const {
  const BatchShape known = batch_.shape();
  for (std::uint64_t i = 0; i < batch_.plan.valid; ++i) {
    columns_[batch_.picks[i].source]->fill_row(batch_.rows[i], known, out);
  }
  const auto padding = static_cast<std::size_t>(batch_.format - batch_.formats->data());
  columns_[padding]->fill_padding(known, out);
}

}  // namespace penstock
