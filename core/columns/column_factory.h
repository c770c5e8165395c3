// The factory of columns: which kind a spec asks for. Any thread.
#pragma once

#include "core/columns/column.h"
#include "core/columns/column_spec.h"
#include "core/rows/source.h"

#include <memory>

namespace penstock {

/// The column that `spec` is of rows of this source. A field's column may be the records themselves (ArrayShape's
/// in_place) if `end_to_end`: rows lie without gaps. Throws InvalidArgument: no such field, a type that it cannot
/// become, more records skipped than a row has.
std::shared_ptr<const Column> make_column(const ColumnSpec& spec, const SourceInfo& source, bool end_to_end);

}  // namespace penstock
