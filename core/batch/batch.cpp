#include "core/batch/batch.h"

#include <algorithm>

namespace penstock {

BatchShape Batch::shape() const noexcept {
  return {plan.rows, plan.valid, format->shape.ragged, format->shape.length, record_count(), starts, longest};
}

std::uint64_t Batch::record_count() const noexcept {
  if (format->shape.ragged) return starts.empty() ? 0 : starts.back();
  return plan.rows * format->shape.length;
}

std::uint64_t Batch::row_length(std::uint64_t i) const noexcept {
  return format->shape.ragged ? starts[i + 1] - starts[i] : format->shape.length;
}

std::byte* Batch::row_records(std::uint64_t i) noexcept {
  return slab.data() + records_at + (format->shape.ragged ? byte_starts[i] : i * format->row_bytes);
}

bool Batch::has_records() const {
  if (format->source->info().fields_apart) return false;
  if (formats->size() == 1) return true;
  return std::all_of(picks.begin(), picks.end(), [&](const Pick& pick) {
    const BatchFormat& own = (*formats)[pick.source];
    return &own == format || own.has_records_of(*format);
  });
}

std::uint64_t Batch::held_bytes() const noexcept {
  std::uint64_t bytes = slab.bytes();
  for (const Row& row : rows) bytes += row.arena.capacity_bytes();
  return bytes;
}

}  // namespace penstock
