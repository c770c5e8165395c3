#include "core/engine/read_rows.h"

#include "core/base/error.h"
#include "core/engine/row_runner.h"

namespace penstock {
namespace {

// Rows under way at once: enough for neighbours to be merged and for a ring to be busy.
constexpr std::uint64_t kRowsAtOnce = 64;

void run_part(const std::shared_ptr<Batch>& batch, RowRunner::Part part, const StoreChoice& through) {
  std::exception_ptr error;
  std::uint64_t error_row = UINT64_MAX;
  RowRunner runner(
      [&](const std::shared_ptr<Batch>&, std::uint64_t row, Outcome, const std::exception_ptr& failed) {
        if (failed && row < error_row) {
          error_row = row;
          error = failed;
        }
      },
      through, ChannelMode::MayWait);
  for (std::uint64_t row = 0; row < batch->plan.rows && !error;) {
    while (row < batch->plan.rows && runner.in_flight() < kRowsAtOnce) runner.start(batch, row++, part);
    runner.pump(std::chrono::milliseconds(50));
  }
  while (runner.in_flight() > 0) runner.pump(std::chrono::milliseconds(50));
  if (error) std::rethrow_exception(error);
}

}  // namespace

std::shared_ptr<Batch> read_rows(std::shared_ptr<const BatchFormats> formats, std::span<const std::uint64_t> indices,
                                 const StoreChoice& through) {
  auto batch = std::make_shared<Batch>();
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
    run_part(batch, RowRunner::Part::Measure, through);
    batch->measure();
  }
  batch->slab.ensure(batch->needed_bytes());
  batch->place();
  run_part(batch, ragged ? RowRunner::Part::AfterMeasure : RowRunner::Part::Whole, through);
  batch->finish();
  batch->phase = Batch::Phase::Ready;
  return batch;
}

}  // namespace penstock
