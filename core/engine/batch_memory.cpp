#include "core/engine/batch_memory.h"

#include "core/base/align.h"
#include "core/base/error.h"
#include "core/engine/row_memory.h"

#include <new>
#include <span>
#include <string>

namespace penstock {
namespace {

const char* advice(const Batch& batch) {
  if (batch.plan.rows > 1) return "use a smaller batch size";
  return batch.format->shape.ragged ? "its document is too large" : "use a smaller window";
}

[[noreturn]] void raise_too_large(const Batch& batch) {
  const RowShape& shape = batch.format->shape;
  const std::string records = shape.ragged ? "" : fmt::format(" of {} records", with_commas(shape.length));
  raise(ErrorKind::InvalidArgument, "no memory for a batch of {} rows{}: {}", with_commas(batch.plan.rows), records,
        advice(batch));
}

}  // namespace

// The lead of the first row is read before its record 0, which begins a cache line.
std::uint64_t columns_at(const Batch& batch) {
  const BatchFormat& format = *batch.format;
  const std::uint64_t before = align_up(format.lead_bytes, kCacheLine);
  const std::uint64_t ragged_bytes = batch.byte_starts.empty() ? 0 : batch.byte_starts.back();
  return align_up(before + (format.shape.ragged ? ragged_bytes : batch.plan.rows * format.row_bytes), kCacheLine);
}

std::uint64_t needed_bytes(const Batch& batch) {
  const BatchFormat& format = *batch.format;
  const auto check = [&](std::uint64_t bytes) {
    if (bytes > kMostBatchBytes) raise_too_large(batch);
  };
  if (format.shape.ragged) {
    check(batch.byte_starts.empty() ? 0 : batch.byte_starts.back());
  } else if (format.row_bytes > 0 && batch.plan.rows > kMostBatchBytes / format.row_bytes) {
    raise_too_large(batch);
  }
  const BatchShape known = batch.shape();
  std::uint64_t bytes = columns_at(batch);
  for (const auto& column : format.columns) {
    const std::uint64_t more = column->shape(known).bytes;
    check(more);
    check(bytes += align_up(more, kCacheLine));
  }
  return bytes;
}

std::uint64_t bounded_bytes(const Batch& batch) {
  const std::uint64_t bytes = needed_bytes(batch);
  if (bytes <= batch.most_bytes) return bytes;
  raise_too_long(batch.format->source->info(), std::span(batch.rows).first(batch.plan.valid), bytes, batch.most_bytes);
}

void check_rows(const Batch& batch) {
  if (batch.plan.rows > kMostBatchBytes / sizeof(Row)) raise_too_large(batch);
}

void ensure_slab(Batch& batch, std::uint64_t bytes) {
  try {
    batch.slab.ensure(bytes);
  } catch (const std::bad_alloc&) {
    raise_no_memory(batch);
  }
}

void raise_no_memory(const Batch& batch) {
  const bool is_known = !batch.format->shape.ragged || batch.starts.size() == batch.plan.rows + 1;
  raise(ErrorKind::InvalidArgument, "no memory for a batch of {} rows{}: {}", with_commas(batch.plan.rows),
        is_known ? fmt::format(", {} bytes", with_commas(needed_bytes(batch))) : "", advice(batch));
}

}  // namespace penstock
