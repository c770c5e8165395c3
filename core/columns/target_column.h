// TargetColumn: which targets of a training step count: loss_mask, and labels that are -100 where they do not.
//
//   labels     if the spec has them; the first array then
//   loss_mask  bool: whether the target of each record counts; in padding none
//
// Both are [rows, length], or [records] if ragged, or [rows, T] if those are padded (core/columns/record_array.h).
//
// What only functions of metadata say is taken from both once the batch is ready (core/batch/span_values.h).
#pragma once

#include "core/columns/column.h"
#include "core/columns/column_spec.h"
#include "core/columns/leaf_column.h"
#include "core/columns/record_array.h"
#include "core/columns/sequences.h"
#include "core/rows/field_place.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace penstock {

/// Makes -100 of the labels (signed integers of `item_bytes`) where `mask`, of zeros and ones, is 0.
void ignore_labels(std::byte* labels, std::uint32_t item_bytes, const std::byte* mask, std::uint64_t count);

class TargetColumn final : public Column {
 public:
  /// Throws InvalidArgument: as LeafColumn and Sequences do, a mask's field that is neither bool nor integer, a row
  /// without records, targets of packed rows that cross documents.
  TargetColumn(const TargetSpec& spec, const SourceInfo& source);

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override;
  void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const override;
  void fill_padding(const BatchShape& batch, std::byte* out) const override;

 private:
  [[nodiscard]] std::uint64_t mask_at(const BatchShape& batch) const;
  void fill_labels(const Row& row, std::uint64_t targets, RecordArray::Place place, std::byte* labels) const;
  void fill_mask(const Row& row, std::uint64_t targets, RecordArray::Place place, std::byte* mask) const;

  std::optional<LeafColumn> labels_;  // of the records themselves: the target of one is the next
  std::uint32_t label_bytes_ = 0;
  bool mask_;
  bool packed_;
  std::uint64_t shorten_;
  RecordArray places_;
  std::vector<FieldPlace> fields_;
  std::optional<Sequences> documents_;  // where targets of other documents do not count
};

}  // namespace penstock
