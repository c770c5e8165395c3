#include "core/columns/cells/cell.h"

#include "core/base/error.h"
#include "core/columns/leaf_column.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace penstock::cells {
namespace {

constexpr ScalarType kGene{'u', 4};
constexpr ScalarType kValue{'f', 8};

// Of the calling thread, for the cell that it reads.
struct CellScratch {
  std::vector<std::uint32_t> genes;
  std::vector<double> values;
  std::vector<std::uint64_t> present;  // a bit for each gene of the batch, all 0 between cells
  std::vector<double> placed;          // by gene of the batch, where that is present
};

CellScratch& cell_scratch(std::uint64_t records) {
  static thread_local CellScratch scratch;
  if (scratch.genes.size() < records) {
    scratch.genes.resize(records);
    scratch.values.resize(records);
  }
  return scratch;
}

bool rises(const std::vector<std::int32_t>& places) {
  std::int32_t last = -1;
  for (const std::int32_t place : places) {
    if (place < 0) continue;
    if (place <= last) return false;
    last = place;
  }
  return true;
}

PackedRuns packed_of(ScalarType gene, ScalarType value) {
  const Kernels::Packed& packed = gene.bytes == 2 ? kernels().of_u2 : kernels().of_u4;
  if (gene.bytes == 1) return {};
  if (value == ScalarType{'f', 4}) return packed.f4;
  if (value.kind != 'u') return {};
  return value.bytes == 1 ? packed.u1 : value.bytes == 2 ? packed.u2 : packed.u4;
}

// Genes are distinct, so their places are.
void sort_by_place(CellScratch& scratch, std::uint64_t count, std::uint64_t width) {
  const std::uint64_t words = (width + 63) / 64;
  if (scratch.present.size() < words) scratch.present.resize(words);
  if (scratch.placed.size() < width) scratch.placed.resize(width);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t place = scratch.genes[i];
    scratch.present[place / 64] |= std::uint64_t{1} << (place % 64);
    scratch.placed[place] = scratch.values[i];
  }
  std::uint64_t next = 0;
  for (std::uint64_t word = 0; word < words; ++word) {
    for (std::uint64_t bits = std::exchange(scratch.present[word], 0); bits != 0; bits &= bits - 1) {
      const auto place = static_cast<std::uint32_t>(word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits)));
      scratch.genes[next] = place;
      scratch.values[next++] = scratch.placed[place];
    }
  }
}

}  // namespace

void refuse_cell(const Row& row, const std::string& what) {
  const Source::Place place = row.source->place_of(row.index);
  raise(ErrorKind::InvalidArgument, "{}: cell {} ({} of this file): {}", place.file,
        with_commas(row.source->base_index(row.index)), with_commas(place.number), what);
}

CellReader::Field CellReader::field_of(const SourceInfo& source, const std::string& name, std::string_view kinds,
                                       std::string_view wanted) {
  const Leaf& leaf = find_leaf(source, name);
  Field field{{leaf.kind, leaf.item_bytes}, leaf.offset_bytes, 0, source.stored_record_bytes};
  if (kinds.find(leaf.kind) == std::string_view::npos || !leaf.dims.empty() ||
      (leaf.is_integer() && leaf.item_bytes > 4)) {
    raise(ErrorKind::InvalidArgument, "{}: field {} of a cell is {}{}: {}", source.path, name, field.type.name(),
          leaf.dims.empty() ? "" : ", several a record", wanted);
  }
  if (!source.fields_apart) return field;
  field.offset_bytes = 0;
  field.stride_bytes = leaf.item_bytes;
  for (const Leaf& other : source.schema.leaves()) {
    if (other.name == leaf.name) break;
    field.apart_bytes += other.item_bytes * other.count();
  }
  return field;
}

CellReader::CellReader(std::shared_ptr<const CellSpec> spec, const SourceInfo& source, Values values)
    : spec_(std::move(spec)),
      gene_(field_of(source, spec_->gene, "u", "must be uint8, uint16 or uint32")),
      value_(field_of(source, spec_->value, "uif", "must be an integer of at most 32 bits, or a float")),
      gene_run_(find_cast_run(gene_.type, kGene)),
      value_run_(find_cast_run(value_.type, kValue)),
      values_(spec_->normalize || spec_->log1p ? Values::Finite : values),
      ascending_(rises(spec_->places)) {
  const bool is_packed = !source.fields_apart && gene_.offset_bytes == 0 && value_.offset_bytes == gene_.type.bytes &&
                         gene_.stride_bytes == gene_.type.bytes + value_.type.bytes;
  if (is_packed) packed_ = packed_of(gene_.type, value_.type);
}

// Slow: only once something is known to be wrong.
void CellReader::refuse(const Row& row) const {
  const CellScratch& scratch = cell_scratch(row.length);
  for (std::uint64_t i = 0; i < row.length; ++i) {
    const std::uint32_t gene = scratch.genes[i];
    if (i > 0 && gene == scratch.genes[i - 1]) refuse_cell(row, fmt::format("gene {} is there twice", gene));
    if (i > 0 && gene < scratch.genes[i - 1]) {
      refuse_cell(row,
                  fmt::format("gene {} comes after gene {}: genes of a cell must ascend", gene, scratch.genes[i - 1]));
    }
    if (spec_->known && gene >= *spec_->known) {
      refuse_cell(row, fmt::format("gene {}: there are {} genes", gene, with_commas(*spec_->known)));
    }
    const double value = scratch.values[i];
    if (std::isnan(value)) refuse_cell(row, fmt::format("gene {}: its {} is NaN", gene, spec_->value));
    if (values_ == Values::Finite && !(value >= 0 && std::isfinite(value))) {
      refuse_cell(row, fmt::format("gene {}: its {} is {}; values that are ranked, binned, normalised or logarithmised "
                                   "must be finite and not negative",
                                   gene, spec_->value, value));
    }
  }
  refuse_cell(row, "it is none");
}

// Counts are small integers and many of them equal: what becomes of each is computed once.
void CellReader::compute(double* values, std::uint64_t count, double divisor) const {
  constexpr std::uint64_t kTable = 1024;
  const Kernels& run = kernels();
  const auto all_of = [&](double* of, std::uint64_t n) {
    if (divisor != 1) run.divide(of, n, divisor);
    if (spec_->log1p) run.log1p(of, n);
  };
  if (divisor == 1 && !spec_->log1p) return;
  const double largest = value_.type.kind == 'u' ? run.largest(values, count) : HUGE_VAL;
  if (largest >= kTable || 2 * largest >= static_cast<double>(count)) return all_of(values, count);
  std::array<double, kTable> table;
  const auto entries = static_cast<std::uint64_t>(largest) + 1;
  std::iota(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(entries), 0.0);
  all_of(table.data(), entries);
  run.look_up(values, count, table.data());
}

Cell CellReader::read(const Row& row) const {
  const Kernels& run = kernels();
  const std::uint64_t records = row.length;
  if (records == 0) return {};
  CellScratch& scratch = cell_scratch(records);
  std::uint32_t* const genes = scratch.genes.data();
  double* const values = scratch.values.data();
  gene_run_(gene_.first(row), gene_.stride_bytes, records, reinterpret_cast<std::byte*>(genes), kGene.bytes);
  value_run_(value_.first(row), value_.stride_bytes, records, reinterpret_cast<std::byte*>(values), kValue.bytes);
  bool fine = run.ascends(genes, records) && !(spec_->known && genes[records - 1] >= *spec_->known);
  if (value_.type.kind != 'u') {
    fine &= values_ == Values::Any ? run.has_no_nan(values, records) : run.all_finite(values, records, true);
  }
  if (!fine) refuse(row);

  double divisor = 1;
  if (spec_->normalize) {
    const double sum = run.sum(values, records);
    if (sum != 0) divisor = sum / *spec_->normalize;
  }
  std::uint64_t count = records;
  if (!spec_->places.empty()) {
    count = run.select(genes, values, records, spec_->places.data(), spec_->places.size());
    if (!ascending_) sort_by_place(scratch, count, *spec_->width);
  } else if (spec_->width && genes[records - 1] >= *spec_->width) {
    count = static_cast<std::uint64_t>(std::lower_bound(genes, genes + records, *spec_->width) - genes);
  }
  compute(values, count, divisor);
  return {{genes, count}, {values, count}};
}

bool CellReader::scatters() const noexcept {
  return packed_.scatter != nullptr && !spec_->normalize && !spec_->log1p && values_ == Values::Any;
}

std::int64_t CellReader::run(ScatterRun run, const Row& row, float* out) const {
  const bool is_place = spec_->places.empty();
  return run(row.records, row.length, is_place ? nullptr : spec_->places.data(),
             is_place ? *spec_->width : spec_->places.size(), out);
}

void CellReader::clear(const Row& row, float* out) const noexcept {
  if (scatters()) run(packed_.clear, row, out);
}

namespace {

// Of genes, which ascend.
template <typename Gene>
std::uint64_t count_below(const Gene* genes, std::uint64_t count, std::uint64_t width) {
  return static_cast<std::uint64_t>(std::lower_bound(genes, genes + count, static_cast<Gene>(width)) - genes);
}

}  // namespace

bool CellReader::scatter(const Row& row, float* out) const {
  if (!scatters()) return false;
  const std::int64_t last = run(packed_.scatter, row, out);
  if (last < -1 || (spec_->known && last >= static_cast<std::int64_t>(*spec_->known))) {
    static_cast<void>(read(row));  // throws
  }
  return true;
}

std::uint64_t CellReader::copy(const Row& row, std::byte* genes, CastRun gene_run, bool wide, std::byte* values,
                               CastRun value_run, bool is_double) const {
  const Kernels& run = kernels();
  const std::uint64_t records = row.length;
  if (records == 0) return 0;
  auto* const narrow_genes = reinterpret_cast<std::int32_t*>(genes);
  auto* const wide_genes = reinterpret_cast<std::int64_t*>(genes);
  bool holds = true;
  bool fine = true;
  if (packed_.split != nullptr && !wide && !is_double) {
    fine = packed_.split(row.records, records, narrow_genes, reinterpret_cast<float*>(values));
    holds = narrow_genes[records - 1] >= 0;
  } else {
    holds = gene_run(gene_.first(row), gene_.stride_bytes, records, genes, wide ? 8 : 4);
    value_run(value_.first(row), value_.stride_bytes, records, values, is_double ? 8 : 4);
    fine = wide ? run.ascends_int64(wide_genes, records) : run.ascends_int32(narrow_genes, records);
    if (value_.type.kind == 'f') {
      fine &= is_double ? run.has_no_nan(reinterpret_cast<const double*>(values), records)
                        : run.has_no_nan_float(reinterpret_cast<const float*>(values), records);
    }
  }
  const std::uint64_t last = wide ? static_cast<std::uint64_t>(wide_genes[records - 1])
                                  : static_cast<std::uint32_t>(narrow_genes[records - 1]);
  if (!fine || !holds || (spec_->known && last >= *spec_->known)) {
    static_cast<void>(read(row));  // throws if it is the cell
    refuse_cell(row, fmt::format("gene {} does not fit int32: use index=\"int64\"", last));
  }
  if (!spec_->width || last < *spec_->width) return records;
  return wide ? count_below(wide_genes, records, *spec_->width) : count_below(narrow_genes, records, *spec_->width);
}

}  // namespace penstock::cells
