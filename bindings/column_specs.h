// Columns as Python asks for them: tuples that bindings/penstock/_data/arrays.py names.
#pragma once

#include "core/columns/column_spec.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace penstock::bindings {

/// (name, field, type, skip, shorten, labels)
using FieldTuple = std::tuple<std::string, std::string, std::string, std::uint64_t, std::uint64_t, bool>;
/// ("spans" | "end_of_document" | "begin_of_document", field, value)
using BoundsTuple = std::tuple<std::string, std::string, std::int64_t>;
/// ("cu_seqlens" | "max_seqlen" | "position_ids" | "document_ids", shorten, bounds, max_documents)
using SequenceTuple = std::tuple<std::string, std::uint64_t, BoundsTuple, std::optional<std::uint64_t>>;
/// (length, multiple_of, left)
using PaddingTuple = std::tuple<std::uint64_t, std::uint64_t, bool>;
/// (labels, mask, shorten, fields, cross_document, bounds, padding)
using TargetTuple = std::tuple<std::optional<FieldTuple>, bool, std::uint64_t, std::vector<std::string>, bool,
                               BoundsTuple, std::optional<PaddingTuple>>;
/// (name, type, fill, shorten, padding)
using PerSpanTuple = std::tuple<std::string, std::string, std::uint64_t, std::uint64_t, std::optional<PaddingTuple>>;
/// What is computed of documents.
using ComputedTuple = std::variant<SequenceTuple, TargetTuple, PerSpanTuple>;
using ComputedList = std::vector<ComputedTuple>;

/// Throws InvalidArgument for a type that is none.
FieldSpec field_spec(const FieldTuple& field);

/// What pybind11 holds of a maker: it has no shared_ptr to const.
using MakerList = std::vector<std::shared_ptr<ColumnMaker>>;

/// The fields, then what is computed of documents, then what the makers make, then the values of documents.
std::vector<ColumnSpec> column_specs(const std::vector<FieldTuple>& fields, const ComputedList& computed,
                                     const MakerList& makers, const std::vector<std::string>& values);

}  // namespace penstock::bindings
