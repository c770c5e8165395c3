#include "core/columns/column_factory.h"

#include "core/columns/leaf_column.h"
#include "core/columns/per_span_column.h"
#include "core/columns/sequence_columns.h"
#include "core/columns/target_column.h"
#include "core/columns/value_column.h"

#include <variant>

namespace penstock {

std::shared_ptr<const Column> make_column(const ColumnSpec& spec, const SourceInfo& source, bool end_to_end) {
  if (const auto* field = std::get_if<FieldSpec>(&spec)) {
    return std::make_shared<LeafColumn>(*field, source, end_to_end);
  }
  if (const auto* value = std::get_if<ValueSpec>(&spec)) return std::make_shared<ValueColumn>(*value, source);
  if (const auto* maker = std::get_if<MadeSpec>(&spec)) return (*maker)->make(source);
  if (const auto* targets = std::get_if<TargetSpec>(&spec)) return std::make_shared<TargetColumn>(*targets, source);
  if (const auto* per_span = std::get_if<PerSpanSpec>(&spec)) return std::make_shared<PerSpanColumn>(*per_span, source);
  return make_sequence_column(std::get<SequenceSpec>(spec), source);
}

}  // namespace penstock
