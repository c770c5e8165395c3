// The columns of a batch, as Python asks for them: what the classes of register_columns.cpp hold.
#pragma once

#include "core/columns/column_spec.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace penstock::bindings {

/// What is computed of documents.
using ComputedSpec = std::variant<SequenceSpec, TargetSpec, PerSpanSpec>;
using ComputedList = std::vector<ComputedSpec>;

/// What pybind11 holds of a maker: it has no shared_ptr to const.
using MakerList = std::vector<std::shared_ptr<ColumnMaker>>;

/// The fields, then what is computed of documents, then what the makers make, then the values of documents.
std::vector<ColumnSpec> column_specs(const std::vector<FieldSpec>& fields, const ComputedList& computed,
                                     const MakerList& makers, const std::vector<std::string>& values);

}  // namespace penstock::bindings
