// Windows: the view of windows that follow one another in a dataset's stream; by itself that of a token stream. Its
// subclasses find the spans of a window too.
//
// Any thread. A row covers [i * window, i * window + window + lookahead) of the stream and is cut into
// pieces, one for each shard that it meets (empty shards give none). Spans cover the whole row, its lookahead included.
#pragma once

#include "layout/dataset.h"

#include <cstdint>
#include <memory>
#include <span>

namespace penstock::layout {

/// The part of a row that lies in one shard: records [first, stop) of the shard, from record `start` of the row on.
struct Piece {
  std::uint64_t shard = 0;
  std::uint64_t first = 0;
  std::uint64_t stop = 0;
  std::uint64_t start = 0;

  /// Where record `record` of the shard is in the row.
  [[nodiscard]] std::uint64_t at(std::uint64_t record) const noexcept { return start + (record - first); }
};

class Windows : public Source {
 public:
  /// `around`: records that are read on each side of a row, where its shard has them. Throws InvalidArgument (see
  /// make_windows).
  Windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead, std::uint64_t around = 0);

  [[nodiscard]] const SourceInfo& info() const override { return info_; }

  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const Row& /*row*/, SpanTable& /*out*/) const override {}

 protected:
  [[nodiscard]] const Shard& shard(const Piece& piece) const { return dataset_->shards[piece.shard]; }
  [[nodiscard]] const Dataset& dataset() const { return *dataset_; }

  /// The row's pieces, in its arena.
  std::span<Piece> cut(Row& row) const;
  /// The read of records [first, stop) of the piece's shard, which may go beyond the piece, to where they belong.
  void plan_records(const Row& row, const Piece& piece, std::uint64_t first, std::uint64_t stop, Reads& out) const;

 private:
  DatasetPtr dataset_;
  std::uint64_t window_;
  std::uint64_t length_ = 0;  // window + lookahead
  SourceInfo info_;
};

/// The windows of one kind of span each; `make_windows` picks.
std::shared_ptr<const Source> make_compact_windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead);
std::shared_ptr<const Source> make_ids_windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead);
std::shared_ptr<const Source> make_megatron_windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead);

}  // namespace penstock::layout
