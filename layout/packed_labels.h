// Packed labels: what follows each record of a packed row in its piece: [rows, window]. -100, which torch's
// cross_entropy ignores, where nothing does: at the end of a piece, in padding, in rows of padding.
//
// Immutable; any thread.
#pragma once

#include "core/batch/column_maker.h"
#include "core/batch/schema.h"

#include <memory>
#include <string>

namespace penstock::layout {

/// Of `field`, a single integer a record; `type` is a signed integer. Throws InvalidArgument where it is not; make()
/// does for a field that is not there, and for rows that are not packed.
std::shared_ptr<const ColumnMaker> make_packed_labels(std::string field, ScalarType type);

}  // namespace penstock::layout
