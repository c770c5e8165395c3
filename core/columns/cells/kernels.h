// Kernels: the loops over a cell's values, compiled for AVX2 too; the form is chosen at run time. Both give the same
// bits: sums have a fixed order, and nothing is contracted.
//
// Pure functions: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::cells {

/// Parts `count` packed records into genes and values; false if a gene is not larger than the one before it, or a value
/// is NaN (all are written all the same). A gene beyond int32 becomes negative.
using SplitRun = bool (*)(const std::byte* records, std::uint64_t count, std::int32_t* genes, float* values);

/// Writes the values of packed records to row[place] of their genes: places[gene] for genes below `mapped` (-1: left
/// out), or the gene itself where `places` is null. Returns the last gene, -1 without records; -2 where SplitRun would
/// return false.
using ScatterRun = std::int64_t (*)(const std::byte* records, std::uint64_t count, const std::int32_t* places,
                                    std::uint64_t mapped, float* row);

/// The loops over packed records of one type of gene and of value.
struct PackedRuns {
  SplitRun split;
  ScatterRun scatter;
  ScatterRun clear;  // writes 0 to the places that `scatter` writes to
};

struct Kernels {
  /// Records of a u2 or u4 gene, then a value of this type.
  struct Packed {
    PackedRuns u1;
    PackedRuns u2;
    PackedRuns u4;
    PackedRuns f4;
  };
  Packed of_u2;
  Packed of_u4;
  /// A copy to memory that is not read soon: it goes past the caches, which then need not read it first.
  void (*stream)(const std::byte* from, std::uint64_t bytes, std::byte* to);
  /// Whether each gene is larger than the one before it.
  bool (*ascends)(const std::uint32_t* genes, std::uint64_t count);
  // The same of genes as a batch has them.
  bool (*ascends_int32)(const std::int32_t* genes, std::uint64_t count);
  bool (*ascends_int64)(const std::int64_t* genes, std::uint64_t count);
  /// Whether no value is NaN.
  bool (*has_no_nan)(const double* values, std::uint64_t count);
  bool (*has_no_nan_float)(const float* values, std::uint64_t count);
  /// Whether all values are finite, and (`positive`) none is below 0.
  bool (*all_finite)(const double* values, std::uint64_t count, bool positive);
  /// Their sum: eight partial sums of every eighth value, then those.
  double (*sum)(const double* values, std::uint64_t count);
  /// values[i] / divisor.
  void (*divide)(double* values, std::uint64_t count, double divisor);
  /// values[i] / divisors[i].
  void (*divide_each)(double* values, const double* divisors, std::uint64_t count);
  /// log(1 + values[i]) of values from 0 on: fdlibm's, an error below one unit in the last place.
  void (*log1p)(double* values, std::uint64_t count);
  /// Of values from 0 on.
  double (*largest)(const double* values, std::uint64_t count);
  /// table[values[i]] of values that are integers.
  void (*look_up)(double* values, std::uint64_t count, const double* table);
  /// Of genes that ascend, packs those and values whose place is not below 0 to the front, the place for the gene;
  /// returns how many. A gene at or past `mapped` has none.
  std::uint64_t (*select)(std::uint32_t* genes, double* values, std::uint64_t count, const std::int32_t* places,
                          std::uint64_t mapped);
};

/// Those of this machine.
const Kernels& kernels();

/// Its forms. The second one only where the processor has AVX2.
const Kernels& kernels_generic();
const Kernels& kernels_avx2();

}  // namespace penstock::cells
