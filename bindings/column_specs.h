// Columns as Python asks for them: tuples that bindings/penstock/_layout.py names.
#pragma once

#include "core/batch/column_spec.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace penstock::bindings {

/// (name, field, type, skip, shorten, labels)
using FieldTuple = std::tuple<std::string, std::string, std::string, std::uint64_t, std::uint64_t, bool>;
/// ("cu_seqlens" | "max_seqlen" | "position_ids" | "document_ids", shorten, field, end_of_document, max_documents)
using SequenceTuple =
    std::tuple<std::string, std::uint64_t, std::string, std::optional<std::int64_t>, std::optional<std::uint64_t>>;

/// Throws InvalidArgument for a type that is none.
FieldSpec field_spec(const FieldTuple& field);

/// What pybind11 holds of a maker: it has no shared_ptr to const.
using MakerList = std::vector<std::shared_ptr<ColumnMaker>>;

/// The fields, then the sequences, then what the makers make, then the values of documents.
std::vector<ColumnSpec> column_specs(const std::vector<FieldTuple>& fields, const std::vector<SequenceTuple>& sequences,
                                     const MakerList& makers, const std::vector<std::string>& values);

}  // namespace penstock::bindings
