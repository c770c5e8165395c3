// A model dataset: shards as plain vectors, written as files in each layout, and the spans of a row worked out record
// by record. What the sources find is compared with it.
#pragma once

#include "layout/dataset.h"
#include "tests/native/layout/drive.h"

namespace penstock::testing {

/// One span: its number of records, its entry.
struct ModelSpan {
  std::uint64_t records;
  std::string entry;
};

/// Compact: spans in order. Ids: one id a record, entries by id. Records have the one field token u2: shard * 1000 + i.
struct ModelShard {
  std::vector<ModelSpan> spans;
  std::vector<std::uint32_t> ids;
  std::vector<std::string> entries;

  [[nodiscard]] std::uint64_t records() const;
};

/// Spans of these lengths, each with an entry of its own.
ModelShard shard_of(const std::vector<std::uint64_t>& lengths);

class Model {
 public:
  /// Records of one field, a token of 2 or 4 bytes.
  Model(layout::SpanKind kind, std::vector<ModelShard> shards, std::uint64_t token_bytes = 2);

  /// Opened as open_dataset() would; its files are in the model's folder.
  [[nodiscard]] layout::DatasetPtr dataset() const { return dataset_; }
  [[nodiscard]] const std::vector<ModelShard>& shards() const { return shards_; }
  [[nodiscard]] std::uint64_t records() const { return dataset_->record_count(); }
  [[nodiscard]] const TemporaryFolder& folder() const { return folder_; }

  /// Record `i` of the stream, as stored.
  [[nodiscard]] std::vector<std::byte> record(std::uint64_t i) const;
  /// The spans of a row that covers [begin, end) of the stream, from the definition.
  [[nodiscard]] std::vector<Span> spans(std::uint64_t begin, std::uint64_t end) const;

 private:
  struct Place {
    std::uint64_t shard;
    std::uint64_t record;
  };
  [[nodiscard]] Place place(std::uint64_t i) const;
  [[nodiscard]] std::vector<std::uint64_t> find_owners(const ModelShard& shard) const;
  void append_record(std::vector<std::byte>& out, const Place& at) const;
  void write_shard(layout::Dataset& dataset, std::uint64_t number) const;

  layout::SpanKind kind_;
  std::vector<ModelShard> shards_;
  std::uint64_t token_bytes_;
  std::vector<std::vector<std::uint64_t>> owners_;  // by shard: the span, or id, of each record
  TemporaryFolder folder_;
  layout::DatasetPtr dataset_;
};

/// A row's records and spans are exactly the model's; entries too where they were read.
void expect_row(const Model& model, const Source& source, const Driven& driven, std::uint64_t begin, std::uint64_t end);

/// Twelve documents in two shards, with an empty one between them.
Model some_documents();

/// Each window equals the model.
void expect_windows(const Model& model, std::uint64_t window, std::uint64_t lookahead);
/// All windows of all sizes with lookahead 0 to 2 equal the model, whether the source keeps metadata or not.
void expect_all_windows(const Model& model);

}  // namespace penstock::testing
