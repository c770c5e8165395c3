// Dataset: an opened dataset, ours or a foreign one, as tables of shards; no file is open.
//
// Opening one of ours reads dataset.json and nothing else. Views of it (windows, documents) are Sources. Immutable
// after opening; any thread; views share it.
#pragma once

#include "core/io/open_store.h"
#include "core/rows/schema.h"
#include "core/rows/source.h"
#include "core/rows/value_type.h"
#include "layout/dataset/shard.h"
#include "layout/values/column_types.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock::layout {

/// How spans are found.
enum class SpanKind {
  None,      // a token stream
  Compact,   // metadata.directory -> metadata.index (first record, byte offset) -> metadata.bin
  Ids,       // metadata_id in each record -> metadata.index (byte offsets) -> metadata.bin
  Opaque,    // no records: metadata.index (byte offsets) -> metadata.bin
  Megatron,  // documents of a .idx file; no entries
  Arrays,    // documents of field arrays (field_arrays.h); no entries
  Bounds,    // documents that follow one another, told by an array of a file or by a table; no entries
};

class DatasetColumns;  // dataset_columns.h

struct Dataset {
  std::string path;  // as the user gave it, for messages and repr
  std::string kind;  // "penstock", "raw", "numpy", "llm.c", "megatron", "h5ad", "datatrove", "olmo", "mds", "litdata"
  std::string mode;  // "stream" (with metadata), "tokens", "opaque"
  SpanKind spans = SpanKind::None;
  Schema schema;  // visible fields; empty for opaque
  std::uint64_t stored_record_bytes = 0;
  bool fields_apart = false;   // the second of two fields lies in Shard::columns; Arrays: as field_arrays.h says
  std::string codec_json;      // {"name":"json"}, {"name":"numpy","dtype":[…]}; "null" without metadata
  std::string tokenizer_json;  // "null" if unknown
  std::string fingerprint;     // 32 hex digits
  std::string features;        // where the dataset of its features is; "" without
  std::string features_fingerprint;
  /// Documents told by a token (token_documents.h): `"end_of_document":0,`, first in their view's identity; else "".
  std::string token_rule;
  ValueTypes columns;                              // typed values of each entry
  std::vector<Shard> shards;                       // fixed after opening: reads point at its Files
  std::vector<std::shared_ptr<ByteStore>> stores;  // that the shards' files name, each once

  Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = delete;
  /// Has the stores close what is open for its files.
  ~Dataset();

  [[nodiscard]] std::uint64_t record_count() const noexcept { return record_starts.empty() ? 0 : record_starts.back(); }
  [[nodiscard]] std::uint64_t span_count() const noexcept { return span_starts.empty() ? 0 : span_starts.back(); }
  /// Notes a store that files of its shards lie in.
  void add_store(const std::shared_ptr<ByteStore>& store);
  /// The shard that has element `at` of the stream whose prefix sums are `starts`: the last one that begins at or
  /// before it, so empty ones before it are passed over. `at` is less than the last sum.
  static std::uint64_t shard_of(const std::vector<std::uint64_t>& starts, std::uint64_t at) noexcept;
  /// Prefix sums over shards, size shards + 1, made by finish().
  std::vector<std::uint64_t> record_starts;
  std::vector<std::uint64_t> span_starts;
  /// What opening ends with: computes the prefix sums, so that no source's arithmetic can overflow or leave a stream.
  /// Throws Corruption if they do not fit 63 bits or a stream is too short for its shard's records.
  void finish();
  /// Of all shards together; null without columns. Made by finish().
  std::shared_ptr<const DatasetColumns> column_table;
  /// The number of the column of this name. Throws InvalidArgument, which names those that there are.
  [[nodiscard]] std::size_t find_column(const std::string& name) const;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

/// What all views of a dataset say of themselves; the size, the shape and the view itself are theirs to add.
SourceInfo info_of(const Dataset& dataset, std::uint64_t size);

/// Opens the dataset in the folder at `location`. Throws NotFound (no such folder; a folder without dataset.json says
/// how many finished shards it holds and how to go on), Corruption (manifest), IoError.
DatasetPtr open_dataset(const Location& location, Checks checks = Checks::Index);

/// Opens token files in place, end to end in the order given, which may lie in different stores. `descr_json` is the
/// schema's JSON form for bare files;
/// "" where every file says its own type (llm.c, .npy). All files must agree. Sniffs llm.c's magic and NumPy's. Throws
/// InvalidArgument, NotFound, Corruption (size not a multiple of the record, truncated, wrong magic, evaluation files).
DatasetPtr open_raw(const std::vector<Location>& files, const std::string& descr_json);

/// Opens Megatron's prefix.bin + prefix.idx pairs, documents as spans. Same errors.
DatasetPtr open_megatron(const std::vector<Location>& prefixes);

/// Several datasets as one, shards in order; they may lie in different stores. Those of ours get the fingerprint that
/// combining them on disk gives. Throws InvalidArgument if mode, schema, codec or kind of spans differ.
DatasetPtr concatenate(const std::vector<DatasetPtr>& datasets);

/// Shards `numbers` of a dataset, in this order, as a dataset: of ours with the fingerprint that combining them on disk
/// gives. Throws InvalidArgument: none, one that is not there, one that comes twice.
DatasetPtr select_shards(const DatasetPtr& dataset, const std::vector<std::uint64_t>& numbers);

/// The view of windows of `window` records that follow one another, each read with `lookahead` records after it:
/// (records - lookahead) div window observations. `columns` are those whose values go with each span. Throws
/// InvalidArgument (window 0, no stream, longer than the stream; no such column).
std::shared_ptr<const Source> make_windows(const DatasetPtr& dataset, std::uint64_t window, std::uint64_t lookahead,
                                           const std::vector<std::string>& columns = {});

/// What documents of more records become, where a view wants them short.
struct DocumentLimit {
  std::uint64_t most_records = UINT64_MAX;
  bool refuse = false;  // longer ones are the error of their batch; else their first records are read
};

/// The view whose observation i is span i: its records, its entry (opaque: its entry alone) and its values of
/// `columns`. Throws InvalidArgument for a token stream and for the ids layout (which says how to convert), for a
/// dataset without documents, and for a column that it has not.
std::shared_ptr<const Source> make_documents(const DatasetPtr& dataset, const std::vector<std::string>& columns = {},
                                             const DocumentLimit& limit = {});

}  // namespace penstock::layout
