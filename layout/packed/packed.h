// Packed: the view whose observation i is row i of a pack table: documents end to end, each from a multiple of
// `multiple_of` on, and zeros where there is nothing.
//
// The last `lookahead` records of a row are for the labels of those before them. A row's spans are its pieces: records
// outside of them are padding (SourceInfo::packed_multiple). Where a piece lies, its document's finder says. Immutable;
// any thread.
#pragma once

#include "layout/documents/documents.h"
#include "layout/packed/pack_table.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock::layout {

/// More documents than this are packed beforehand, by `penstock pack`.
inline constexpr std::uint64_t kMostPackedAtOpening = 10'000'000;

class Packed final : public Source {
 public:
  /// Throws InvalidArgument (no rows, rows of no more than the lookahead) and Corruption (see make_document_finder).
  Packed(DatasetPtr dataset, std::shared_ptr<const PackTable> table, std::uint64_t lookahead);

  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const Row& row, SpanTable& out) const override;

 private:
  struct Piece;
  struct State;
  void begin(Row& row, State& state) const;
  bool find(Row& row, State& state, Parts wanted, Reads& out) const;
  void place(Row& row, State& state) const;
  void plan_parts(Row& row, State& state, Parts wanted, Reads& out) const;
  void plan_slice(Row& row, const State& state, Reads& out) const;

  const DatasetPtr dataset_;
  const std::shared_ptr<const PackTable> table_;
  const PackingRule rule_;
  std::unique_ptr<const DocumentFinder> finder_;
  SourceInfo info_;
};

/// The view of a table's rows; values of `columns` go with each piece. The table is of this dataset, or of documents of
/// it that were chosen. Throws InvalidArgument.
std::shared_ptr<const Source> make_packed(const DatasetPtr& dataset, std::shared_ptr<const PackTable> table,
                                          const std::vector<std::string>& columns = {}, std::uint64_t lookahead = 0);

}  // namespace penstock::layout
