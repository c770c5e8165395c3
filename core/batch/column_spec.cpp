#include "core/batch/column_spec.h"

#include "core/batch/leaf_column.h"
#include "core/batch/sequence_columns.h"

namespace penstock {

std::shared_ptr<const Column> make_column(const ColumnSpec& spec, const SourceInfo& source, bool end_to_end) {
  if (const auto* field = std::get_if<FieldSpec>(&spec)) {
    return std::make_shared<LeafColumn>(*field, source, end_to_end);
  }
  if (const auto* value = std::get_if<ValueSpec>(&spec)) return std::make_shared<ValueColumn>(*value, source);
  if (const auto* maker = std::get_if<MadeSpec>(&spec)) return (*maker)->make(source);
  return make_sequence_column(std::get<SequenceSpec>(spec), source);
}

Parts parts_of(const ColumnSpec& spec) noexcept {
  if (std::holds_alternative<ValueSpec>(spec)) return Parts::Values;
  if (const auto* maker = std::get_if<MadeSpec>(&spec)) return (*maker)->parts();
  const auto* sequences = std::get_if<SequenceSpec>(&spec);
  return sequences != nullptr && !sequences->end_of_document ? Parts::Spans : Parts::None;
}

}  // namespace penstock
