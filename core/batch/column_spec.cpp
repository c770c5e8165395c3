#include "core/batch/column_spec.h"

#include "core/batch/leaf_column.h"
#include "core/batch/per_span_column.h"
#include "core/batch/sequence_columns.h"
#include "core/batch/target_column.h"

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

bool is_of_records(const ColumnSpec& spec) noexcept {
  const auto* const sequences = std::get_if<SequenceSpec>(&spec);
  if (sequences == nullptr) return !std::holds_alternative<ValueSpec>(spec);
  return sequences->kind == SequenceSpec::Kind::Positions || sequences->kind == SequenceSpec::Kind::Documents;
}

std::uint64_t records_after(const ColumnSpec& spec) noexcept {
  if (const auto* field = std::get_if<FieldSpec>(&spec)) return field->skip;
  const auto* const targets = std::get_if<TargetSpec>(&spec);
  return targets != nullptr && (targets->labels || !targets->fields.empty()) ? 1 : 0;
}

Parts parts_of(const ColumnSpec& spec) noexcept {
  if (std::holds_alternative<ValueSpec>(spec)) return Parts::Values;
  if (const auto* maker = std::get_if<MadeSpec>(&spec)) return (*maker)->parts();
  const DocumentBounds* bounds = nullptr;
  if (const auto* sequences = std::get_if<SequenceSpec>(&spec)) bounds = &sequences->bounds;
  const auto* targets = std::get_if<TargetSpec>(&spec);
  if (targets != nullptr && !targets->cross_document) bounds = &targets->bounds;
  const bool by_spans = bounds != nullptr && bounds->by == DocumentBounds::By::Spans;
  return by_spans || std::holds_alternative<PerSpanSpec>(spec) ? Parts::Spans : Parts::None;
}

}  // namespace penstock
