// Windows: the view of windows that follow one another in a dataset's stream: a cutter, and the dataset's span finder.
//
// Any thread. With a random phase each epoch's windows begin at another record: the phase is a hash of the epoch, alike
// for windows of all lengths that divide the phase's window. A row covers [i * window, i * window + window + lookahead)
// of the stream from the phase on and is cut into pieces, one for each shard that it meets (empty shards give none).
// Spans cover the whole row, its lookahead included.
#pragma once

#include "layout/dataset.h"
#include "layout/windows/pieces.h"
#include "layout/windows/span_finder.h"

#include <cstdint>
#include <memory>
#include <span>

namespace penstock::layout {

class Windows final : public Source {
 public:
  /// Throws InvalidArgument and Corruption (see make_windows, make_span_finder).
  Windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead, std::uint64_t phase_window = 0);

  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const Row& row, SpanTable& out) const override;
  [[nodiscard]] std::int64_t first_record(const Row& row, std::uint64_t index) const override {
    return static_cast<std::int64_t>(phase_of(row.epoch) + index * window_);
  }

 private:
  [[nodiscard]] std::uint64_t phase_of(std::uint32_t epoch) const;
  template <typename Use>
  void cut(const Row& row, const Use& use) const;
  void plan_slice(const Row& row, std::span<const Piece> pieces, Reads& out) const;
  std::span<Piece> keep_pieces(Row& row) const;
  std::byte* add_neighbours(Row& row, Parts wanted, std::span<Piece> pieces) const;
  bool plan_spans(Row& row, Parts wanted, Reads& out) const;

  DatasetPtr dataset_;
  std::uint64_t window_;
  std::uint64_t length_ = 0;  // window + lookahead
  std::uint64_t phase_window_ = 0;
  std::uint64_t phases_ = 0;  // a phase is below; 0: there are none
  std::unique_ptr<const SpanFinder> finder_;
  bool looks_at_records_ = false;  // the finder
  SourceInfo info_;
};

/// The same as make_windows, but each epoch begins at another record: `phase_window`, which the window divides, is as
/// much as a phase may leave out, so that there are ((records - lookahead) div phase_window - 1) * (phase_window /
/// window) observations in every epoch. Throws InvalidArgument as it does, and where none are left.
std::shared_ptr<const Source> make_windows_with_phase(const DatasetPtr& dataset, std::uint64_t window,
                                                      std::uint64_t lookahead, const std::vector<std::string>& columns,
                                                      std::uint64_t phase_window);

}  // namespace penstock::layout
