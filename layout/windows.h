// Windows: the view of windows that follow one another in a dataset's stream: a cutter, and the dataset's span finder.
//
// Any thread. A row covers [i * window, i * window + window + lookahead) of the stream and is cut into pieces, one for
// each shard that it meets (empty shards give none). Spans cover the whole row, its lookahead included.
#pragma once

#include "layout/dataset.h"
#include "layout/pieces.h"
#include "layout/span_finder.h"

#include <cstdint>
#include <memory>
#include <span>

namespace penstock::layout {

class Windows final : public Source {
 public:
  /// Throws InvalidArgument and Corruption (see make_windows, make_span_finder).
  Windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead);

  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const Row& row, SpanTable& out) const override;
  [[nodiscard]] std::int64_t first_record(const Row& /*row*/, std::uint64_t index) const override {
    return static_cast<std::int64_t>(index * window_);
  }

 private:
  template <typename Use>
  void cut(std::uint64_t index, const Use& use) const;
  std::span<Piece> keep_pieces(Row& row) const;
  std::byte* add_neighbours(Row& row, Parts wanted, std::span<Piece> pieces) const;
  bool plan_spans(Row& row, Parts wanted, Reads& out) const;

  DatasetPtr dataset_;
  std::uint64_t window_;
  std::uint64_t length_ = 0;  // window + lookahead
  std::unique_ptr<const SpanFinder> finder_;
  bool looks_at_records_ = false;  // the finder
  SourceInfo info_;
};

}  // namespace penstock::layout
