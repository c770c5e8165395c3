// Given columns: the place of an array [rows, dims…] that others fill, row by row, before the batch is given out
// (core/engine/hand_over.h). Padding rows are zeros.
//
// Immutable; any thread.
#pragma once

#include "core/columns/column_maker.h"
#include "core/rows/scalar_type.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace penstock {

/// A column whose `fill_row` writes nothing. It needs the records of each row, at which the writer of the column looks.
std::shared_ptr<const ColumnMaker> make_given(ScalarType type, std::vector<std::uint64_t> dims);

}  // namespace penstock
