#include "core/engine/read_rows.h"

#include "core/base/error.h"
#include "core/engine/row_reader.h"

#include <new>

namespace penstock {
namespace {

// Rows under way at once: enough for neighbours to be merged and for a ring to be busy.
constexpr std::uint64_t kFewRows = 64;

void read_part(const std::shared_ptr<Batch>& batch, RowReader::Part part, const StoreChoice& through) {
  std::exception_ptr error;
  std::uint64_t error_row = UINT64_MAX;
  RowReader reader(
      [&](const RowReader::Ended& ended) {
        if (ended.error && ended.row < error_row) {
          error_row = ended.row;
          error = ended.error;
        }
      },
      through, ChannelMode::MayWait);
  for (std::uint64_t row = 0; row < batch->plan.rows && !error; ++row) {
    reader.start(batch, row, part);
    if (row % kFewRows == kFewRows - 1) reader.pump(std::chrono::milliseconds(50));
  }
  while (!reader.is_idle()) reader.pump(std::chrono::milliseconds(50));
  if (error) std::rethrow_exception(error);
}

void ensure_memory(Batch& batch, std::uint64_t bytes) {
  try {
    if (bytes <= batch.most_bytes) return batch.slab.ensure(bytes);
  } catch (const std::bad_alloc&) {  // as if it were beyond the bound
  }
  raise(ErrorKind::InvalidArgument, "no memory for {} observations at once, {} bytes: read fewer, or smaller ones",
        with_commas(batch.plan.rows), with_commas(bytes));
}

}  // namespace

std::shared_ptr<Batch> read_rows(std::shared_ptr<const BatchFormats> formats, std::span<const std::uint64_t> indices,
                                 const StoreChoice& through, std::uint64_t most_bytes) {
  auto batch = std::make_shared<Batch>();
  batch->most_bytes = most_bytes;
  batch->formats = std::move(formats);
  batch->format = &batch->formats->front();
  batch->plan.rows = batch->plan.valid = indices.size();
  const std::uint64_t size = batch->format->source->info().size;
  batch->picks.reserve(indices.size());
  for (const std::uint64_t index : indices) {
    if (index >= size) {
      raise(ErrorKind::InvalidArgument, "observation {} of a view of {}", with_commas(index), with_commas(size));
    }
    batch->picks.push_back({index, 0, 0, 0});
  }
  batch->prepare_rows();
  const bool ragged = batch->format->shape.ragged;
  if (ragged) {
    read_part(batch, RowReader::Part::Measure, through);
    batch->measure();
  }
  ensure_memory(*batch, ragged ? batch->bounded_bytes() : batch->needed_bytes());
  batch->place();
  read_part(batch, ragged ? RowReader::Part::AfterMeasure : RowReader::Part::Whole, through);
  batch->finish();
  batch->phase = Batch::Phase::Ready;
  return batch;
}

}  // namespace penstock
