#include "bindings/column_specs.h"

#include "core/base/error.h"

namespace penstock::bindings {
namespace {

SequenceSpec::Kind sequence_kind(const std::string& name) {
  if (name == "cu_seqlens") return SequenceSpec::Kind::Bounds;
  if (name == "max_seqlen") return SequenceSpec::Kind::Longest;
  if (name == "position_ids") return SequenceSpec::Kind::Positions;
  if (name == "document_ids") return SequenceSpec::Kind::Documents;
  raise(ErrorKind::InvalidArgument, "there is no computed column {}", name);
}

DocumentBounds bounds_of(const BoundsTuple& bounds) {
  const auto& [by, field, value] = bounds;
  if (by == "spans") return {};
  if (by == "end_of_document") return {DocumentBounds::By::EndValue, field, value};
  if (by == "begin_of_document") return {DocumentBounds::By::BeginValue, field, value};
  raise(ErrorKind::InvalidArgument, "nothing bounds documents by {}", by);
}

std::optional<Padding> padding_of(const std::optional<PaddingTuple>& padding) {
  if (!padding) return std::nullopt;
  const auto& [length, multiple_of, left] = *padding;
  return Padding{length, multiple_of, left};
}

ColumnSpec spec_of(const SequenceTuple& sequence) {
  const auto& [name, shorten, bounds, max_documents] = sequence;
  return SequenceSpec{sequence_kind(name), shorten, bounds_of(bounds), max_documents};
}

ColumnSpec spec_of(const TargetTuple& targets) {
  const auto& [labels, mask, shorten, fields, cross_document, bounds, padding] = targets;
  TargetSpec spec{.mask = mask, .shorten = shorten, .fields = fields, .cross_document = cross_document};
  if (labels) spec.labels = field_spec(*labels);
  spec.bounds = bounds_of(bounds);
  spec.padding = padding_of(padding);
  return spec;
}

ColumnSpec spec_of(const PerSpanTuple& per_span) {
  const auto& [name, type, fill, shorten, padding] = per_span;
  return PerSpanSpec{name, ScalarType::parse(type), fill, shorten, padding_of(padding)};
}

}  // namespace

FieldSpec field_spec(const FieldTuple& field) {
  const auto& [name, leaf, type, skip, shorten, labels] = field;
  return {name, leaf, ScalarType::parse(type), skip, shorten, labels};
}

std::vector<ColumnSpec> column_specs(const std::vector<FieldTuple>& fields, const ComputedList& computed,
                                     const MakerList& makers, const std::vector<std::string>& values) {
  std::vector<ColumnSpec> specs;
  specs.reserve(fields.size() + computed.size() + makers.size());
  for (const FieldTuple& field : fields) specs.emplace_back(field_spec(field));
  for (const ComputedTuple& each : computed)
    std::visit([&](const auto& tuple) { specs.push_back(spec_of(tuple)); }, each);
  for (const auto& maker : makers) specs.emplace_back(MadeSpec(maker));
  for (const std::string& value : values) specs.emplace_back(ValueSpec{value});
  return specs;
}

}  // namespace penstock::bindings
