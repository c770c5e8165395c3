// Cell: the records of one row as genes and values: checked, normalised, and of the selected genes in their order; what
// all forms are made of.
//
// A CellReader is made for one source and immutable; any thread. What it reads lies in memory of the calling thread
// until that thread reads the next cell.
#pragma once

#include "core/columns/cells/kernels.h"
#include "core/rows/cast_runs.h"
#include "core/rows/source.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::cells {

/// What all forms know of cells. Genes are numbers: those of the records, and the batch's, which differ where genes are
/// selected.
struct CellSpec {
  std::string gene = "gene";  // fields of the records
  std::string value = "count";
  /// Genes that the dataset has, if that is known: a record of another one is refused.
  std::optional<std::uint64_t> known = {};
  /// Genes that the batch has, if that is known: the first ones, or by `places`.
  std::optional<std::uint64_t> width = {};
  /// By gene of the records: its number in the batch, -1 if it is left out, as are all behind the last one. Empty: the
  /// numbers are the same.
  std::vector<std::int32_t> places = {};
  /// Values are divided by the cell's sum and multiplied by this; the sum is of all its genes, and one of 0 divides
  /// by 1.
  std::optional<double> normalize = {};
  bool log1p = false;  // log(1 + value) is taken, after that
};

/// Genes ascend. Values are exact, but for what `normalize` and `log1p` compute in 64-bit floats.
struct Cell {
  std::span<const std::uint32_t> genes;  // numbers of the batch
  std::span<double> values;
};

/// Which values a form takes.
enum class Values {
  Any,     // but NaN
  Finite,  // from 0 on, and not infinite
};

class CellReader {
 public:
  /// Throws InvalidArgument: the records have no such fields, or of types that no cell has.
  CellReader(std::shared_ptr<const CellSpec> spec, const SourceInfo& source, Values values);

  /// Throws InvalidArgument naming file, cell and gene: genes that do not ascend, one past those that the dataset has,
  /// a value that is not taken.
  [[nodiscard]] Cell read(const Row& row) const;

  /// Whether a cell's records are the batch's as they are but for their types: nothing is selected or computed.
  [[nodiscard]] bool is_plain() const noexcept {
    return spec_->places.empty() && !spec_->normalize && !spec_->log1p && values_ == Values::Any;
  }
  /// Of such a cell: writes genes and values densely as these types, and returns how many are below the width: the
  /// first ones. Throws as read(), and for a gene that `genes`' type does not hold.
  std::uint64_t copy(const Row& row, std::byte* genes, CastRun gene_run, bool wide, std::byte* values,
                     CastRun value_run, bool is_double) const;

  /// Of such a cell, but that genes may be selected: writes its values as float32 to their genes' places in `row`.
  /// False, with nothing written, where records are not packed as they should be: then read(). Throws as that.
  bool scatter(const Row& row, float* out) const;
  /// Writes 0 where scatter() writes, whether it threw or not.
  void clear(const Row& row, float* out) const noexcept;

  [[nodiscard]] const CellSpec& spec() const noexcept { return *spec_; }
  [[nodiscard]] ScalarType gene_type() const noexcept { return gene_.type; }
  [[nodiscard]] ScalarType value_type() const noexcept { return value_.type; }

 private:
  // Where one field's values lie.
  struct Field {
    ScalarType type;
    std::uint64_t offset_bytes = 0;
    std::uint64_t apart_bytes = 0;  // for each record of the row, where fields lie apart
    std::uint64_t stride_bytes = 0;
    [[nodiscard]] const std::byte* first(const Row& row) const noexcept {
      return row.records + offset_bytes + apart_bytes * row.length;
    }
  };
  static Field field_of(const SourceInfo& source, const std::string& name, std::string_view kinds,
                        std::string_view wanted);
  void compute(double* values, std::uint64_t count, double divisor) const;
  [[noreturn]] void refuse(const Row& row) const;
  [[nodiscard]] bool scatters() const noexcept;
  std::int64_t run(ScatterRun run, const Row& row, float* out) const;

  std::shared_ptr<const CellSpec> spec_;
  Field gene_;
  Field value_;
  CastRun gene_run_;     // to uint32
  CastRun value_run_;    // to float64
  PackedRuns packed_{};  // of records that are packed so and no more, to int32 and float32
  Values values_;
  bool ascending_ = true;  // places rise with the genes
};

/// The error of a cell: where it lies, then `what`.
[[noreturn]] void refuse_cell(const Row& row, const std::string& what);

}  // namespace penstock::cells
