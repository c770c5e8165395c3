// FieldArrays: documents of a file of another format whose fields are arrays beside each other, in chunks anywhere in
// the file: compressed sparse rows of an .h5ad, whose documents are cells of {gene, count}.
//
// The format's reader says where the arrays lie; what is read are ranges of the file. Immutable; any thread.
#pragma once

#include "core/io/open_store.h"
#include "core/rows/scalar_type.h"
#include "layout/dataset.h"
#include "layout/values/column_types.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock::layout {

struct FieldArray {
  std::string name;
  ScalarType stored;
  ScalarType given;                   // what it is cast to where it is stored otherwise; of genes <u4
  std::uint64_t chunk_values = 0;     // of each chunk but the last one, which may have less
  std::vector<std::uint64_t> chunks;  // byte of the file at which each begins

  /// Byte of the file at which this value lies.
  [[nodiscard]] std::uint64_t place(std::uint64_t value) const noexcept {
    return chunks[value / chunk_values] + value % chunk_values * stored.bytes;
  }
};

struct FieldArrays {
  std::vector<std::uint64_t> starts;  // values of each field before each document; documents + 1
  FieldArray genes;                   // by which a document's records are sorted when they are read
  FieldArray values;
};

/// What is to be opened as one shard.
struct FieldArraysFile {
  Location location;
  FileStamp stamp;     // the file was so when it was looked at: another one is refused
  std::string format;  // its kind: "h5ad"
  FieldArrays arrays;
  ValueTypes columns;
  std::shared_ptr<const ShardColumns> shard_columns;  // with places; null without columns
  std::string features_fingerprint;                   // tells the names of genes
};

/// Throws NotFound, IoError; Corruption where arrays cannot lie so in the file; InvalidArgument for types that no cell
/// has, and for columns that do not go together with their types.
DatasetPtr open_field_arrays(FieldArraysFile file);

/// The view of its documents.
std::shared_ptr<const Source> make_array_documents(const DatasetPtr& dataset);

}  // namespace penstock::layout
