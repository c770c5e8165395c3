#include "core/batch/column_factory.h"

#include "core/batch/leaf_column.h"
#include "core/batch/per_span_column.h"
#include "core/batch/sequence_columns.h"
#include "core/batch/target_column.h"
#include "core/batch/value_column.h"

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
