// Documents: the view whose observation i is span i of the dataset: its records and its entry.
//
// Immutable; any thread. The base knows which shard a document is in; subclasses know how to find its records.
#pragma once

#include "layout/dataset.h"

#include <cstdint>
#include <memory>
#include <string>

namespace penstock::layout {

class Documents : public Source {
 public:
  /// Throws InvalidArgument if the dataset has no documents.
  explicit Documents(DatasetPtr dataset);

  [[nodiscard]] std::uint64_t size() const override { return dataset_->span_count(); }
  [[nodiscard]] std::string fingerprint() const override { return dataset_->fingerprint; }
  [[nodiscard]] std::string identity() const override { return R"({"kind":"documents"})"; }
  [[nodiscard]] std::uint64_t shard_count() const override { return dataset_->shards.size(); }
  [[nodiscard]] std::uint64_t record_count() const override;
  [[nodiscard]] const Schema& schema() const override { return dataset_->schema; }
  [[nodiscard]] std::uint64_t stored_record_bytes() const override { return dataset_->stored_record_bytes; }
  [[nodiscard]] RowShape shape() const override { return {true, 0, 0, 0}; }

 protected:
  /// Where a document is: its shard and its number there.
  struct Place {
    std::uint64_t shard = 0;
    std::uint64_t number = 0;
  };
  [[nodiscard]] Place place(std::uint64_t index) const;
  [[nodiscard]] const Shard& shard(const Place& place) const { return dataset_->shards[place.shard]; }
  [[nodiscard]] const Dataset& dataset() const { return *dataset_; }

  /// The read of records [first, first + row.length) of the shard to the row's place.
  void plan_records(const Row& row, const Shard& shard, std::uint64_t first, Reads& out) const;
  /// The one span of a document's row: all of it.
  static void append_span(Row& row, const Place& place, const std::byte* raw, std::uint64_t raw_bytes);

 private:
  DatasetPtr dataset_;
};

std::shared_ptr<const Source> make_megatron_documents(DatasetPtr dataset);

}  // namespace penstock::layout
