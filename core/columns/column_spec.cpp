#include "core/columns/column_spec.h"

namespace penstock {

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
