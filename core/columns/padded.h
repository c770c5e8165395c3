// Padded documents: fields of a batch of documents as rectangles [rows, T, …], with a mask of what is no padding.
//
// T is the length of the longest row of the batch, rounded up, or given. Rows that are padding have nothing but
// padding. Immutable; any thread.
#pragma once

#include "core/columns/column_maker.h"
#include "core/columns/record_array.h"
#include "core/rows/cast.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock {

/// A field's array, or another one of it.
struct PaddedField {
  std::string field;
  ScalarType type;
  std::vector<std::byte> padding;  // a value of the type
};

struct PaddedSpec {
  Padding padding;
  std::vector<PaddedField> fields;
};

/// Arrays: one for each field, then attention_mask (int64 [rows, T], 1 or 0), lengths (int64 [rows]). Throws
/// InvalidArgument: a padding of another size than its type. make() throws it for rows that are not ragged, fields that
/// lie apart or are not there, and types that they cannot become.
std::shared_ptr<const ColumnMaker> make_padded(PaddedSpec spec);

}  // namespace penstock
