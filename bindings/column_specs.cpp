#include "bindings/column_specs.h"

namespace penstock::bindings {

std::vector<ColumnSpec> column_specs(const std::vector<FieldSpec>& fields, const ComputedList& computed,
                                     const MakerList& makers, const std::vector<std::string>& values) {
  std::vector<ColumnSpec> specs;
  specs.reserve(fields.size() + computed.size() + makers.size() + values.size());
  for (const FieldSpec& field : fields) specs.emplace_back(field);
  for (const ComputedSpec& each : computed) std::visit([&](const auto& spec) { specs.emplace_back(spec); }, each);
  for (const auto& maker : makers) specs.emplace_back(MadeSpec(maker));
  for (const std::string& value : values) specs.emplace_back(ValueSpec{value});
  return specs;
}

}  // namespace penstock::bindings
