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

}  // namespace

FieldSpec field_spec(const FieldTuple& field) {
  const auto& [name, leaf, type, skip, shorten, labels] = field;
  return {name, leaf, ScalarType::parse(type), skip, shorten, labels};
}

std::vector<ColumnSpec> column_specs(const std::vector<FieldTuple>& fields, const std::vector<SequenceTuple>& sequences,
                                     const MakerList& makers, const std::vector<std::string>& values) {
  std::vector<ColumnSpec> specs;
  specs.reserve(fields.size() + sequences.size() + makers.size());
  for (const FieldTuple& field : fields) specs.emplace_back(field_spec(field));
  for (const auto& [name, shorten, field, end_of_document, max_documents] : sequences) {
    specs.emplace_back(SequenceSpec{sequence_kind(name), shorten, field, end_of_document, max_documents});
  }
  for (const auto& maker : makers) specs.emplace_back(MadeSpec(maker));
  for (const std::string& value : values) specs.emplace_back(ValueSpec{value});
  return specs;
}

}  // namespace penstock::bindings
