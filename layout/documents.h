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

  [[nodiscard]] const SourceInfo& info() const override { return info_; }

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
  static void append_span(const Row& row, const Place& place, const std::byte* raw, std::uint64_t raw_bytes,
                          SpanTable& out);

 private:
  DatasetPtr dataset_;
  SourceInfo info_;
};

std::shared_ptr<const Source> make_megatron_documents(DatasetPtr dataset);

}  // namespace penstock::layout
