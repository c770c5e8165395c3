// Forms: the arrays that batches of cells are, each made by one column; see penstock.cells.
//
// Makers are immutable; any thread. Each throws InvalidArgument where records are no cells (cell.h), and its columns
// where a cell cannot be.
#pragma once

#include "core/columns/cells/cell.h"
#include "core/columns/column_maker.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace penstock::cells {

using CellSpecPtr = std::shared_ptr<const CellSpec>;

/// Compressed sparse rows; padding rows are empty.
struct CsrSpec {
  bool wide_index = false;    // int64, else int32
  bool double_value = false;  // float64, else float32
};
/// Arrays: genes [records], values [records], offsets [rows + 1].
std::shared_ptr<const ColumnMaker> make_csr(CellSpecPtr cells, CsrSpec spec);

/// One array [rows, width], 0 where a cell has no record. The width must be known. `double_value`: as of CsrSpec.
std::shared_ptr<const ColumnMaker> make_dense(CellSpecPtr cells, bool double_value);

/// Tokens of genes, and what sentences of them share.
struct SentenceSpec {
  std::uint64_t length = 0;               // of a row
  std::vector<std::int64_t> tokens = {};  // by gene of the batch, -1: it has none. Empty: the gene + 4
  std::optional<std::int64_t> cls = {};   // comes first in each sentence
  std::optional<std::int64_t> eos = {};   // comes last
  std::int64_t pad = 0;

  /// Genes that a sentence has room for.
  [[nodiscard]] std::uint64_t room() const noexcept { return length - (cls ? 1 : 0) - (eos ? 1 : 0); }
};

/// Arrays: tokens int64 [rows, length] of the genes whose value is above 0, by value / median descending, then by gene;
/// and bool [rows, length], false where padded. `medians` by gene of the batch; empty: all 1.
std::shared_ptr<const ColumnMaker> make_ranked(CellSpecPtr cells, std::shared_ptr<const SentenceSpec> sentences,
                                               std::vector<double> medians);

/// Which genes stand in a sentence if there are too many; they stay in the order of genes.
enum class Choice { Top, First, Random };

struct BinnedSpec {
  std::vector<double> quantiles = {};  // from 0 to 1: where bins begin
  Choice choice = Choice::Top;
  std::int64_t pad_value = 0;
  std::uint64_t seed = 0;  // of Random, with the epoch and the cell
};

/// Arrays: tokens int64 [rows, length] of the genes whose value is above 0; bins int64, 0 of cls, `pad_value` where
/// padded; bool, false where padded. A value's bin is how many quantiles of the cell's values above 0 do not exceed it.
std::shared_ptr<const ColumnMaker> make_binned(CellSpecPtr cells, std::shared_ptr<const SentenceSpec> sentences,
                                               BinnedSpec spec);

}  // namespace penstock::cells
