#include "core/engine/read_rows.h"

#include "core/base/error.h"
#include "core/base/sync.h"
#include "core/engine/batch_memory.h"
#include "core/engine/batch_work.h"
#include "core/engine/row_reader.h"

#include <chrono>
#include <exception>
#include <new>

namespace penstock {
namespace {

// Rows that are planned together: enough for neighbours to be merged and for a ring to be busy.
constexpr std::uint64_t kPlannedTogether = 64;
// Rows under way before any of them is waited for: a server that answers slowly is asked for many at once.
constexpr std::size_t kMostUnderWay = 1024;

constexpr std::chrono::milliseconds kPatience{50};

void read_part(const std::shared_ptr<Batch>& batch, RowReader::Part part, const ReadOptions& options) {
  std::exception_ptr error;
  std::uint64_t error_row = UINT64_MAX;
  RowReader reader(
      [&](const RowReader::Ended& ended) {
        if (ended.error && ended.row < error_row) {
          error_row = ended.row;
          error = ended.error;
        }
      },
      options.through, ChannelMode::MayWait);
  auto looked = sync::Clock::now();
  const auto pump = [&](std::chrono::nanoseconds patience) {
    reader.pump(patience);
    if (batch->budget.failure()) batch->cancelled = true;  // the deadline is over for all of it
    if (!options.while_waiting) return;
    const auto now = sync::Clock::now();
    if (now - looked < kPatience) return;
    looked = now;
    try {
      options.while_waiting();
    } catch (...) {
      batch->cancelled = true;
      error_row = 0;
      error = std::current_exception();
    }
  };
  for (std::uint64_t row = 0; row < batch->plan.rows && !error; ++row) {
    reader.start(batch, row, part);
    if (row % kPlannedTogether < kPlannedTogether - 1) continue;
    pump(std::chrono::nanoseconds(0));
    while (reader.under_way() >= kMostUnderWay && !error) pump(kPatience);
  }
  while (!reader.is_idle()) pump(kPatience);
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

// What stands at `picks`, of sources of `formats`.
std::shared_ptr<Batch> read_picks(std::shared_ptr<const BatchFormats> formats, std::vector<Pick> picks,
                                  const ReadOptions& options) {
  auto batch = std::make_shared<Batch>();
  batch->most_bytes = options.most_bytes;
  batch->formats = std::move(formats);
  batch->format = picks.empty() ? &batch->formats->front() : &batch->formats->at(picks.front().source);
  batch->plan.rows = batch->plan.valid = batch->plan.of_all = picks.size();
  for (const Pick& pick : picks) {
    const std::uint64_t size = batch->formats->at(pick.source).source->info().size;
    if (pick.index < size) continue;
    raise(ErrorKind::InvalidArgument, "observation {} of a view of {}", with_commas(pick.index), with_commas(size));
  }
  batch->picks = std::move(picks);
  BatchWork(*batch).prepare_rows();
  const bool ragged = batch->format->shape.ragged;
  if (ragged) {
    read_part(batch, RowReader::Part::Measure, options);
    BatchWork(*batch).measure();
  }
  ensure_memory(*batch, ragged ? bounded_bytes(*batch) : needed_bytes(*batch));
  BatchWork(*batch).place();
  read_part(batch, ragged ? RowReader::Part::AfterMeasure : RowReader::Part::Whole, options);
  BatchWork(*batch).finish();
  batch->phase = Batch::Phase::Ready;
  return batch;
}

}  // namespace

std::shared_ptr<Batch> read_rows(std::shared_ptr<const BatchFormats> formats, std::span<const std::uint64_t> indices,
                                 const ReadOptions& options) {
  std::vector<Pick> picks;
  picks.reserve(indices.size());
  for (const std::uint64_t index : indices) picks.push_back({index, 0, 0, 0});
  return read_picks(std::move(formats), std::move(picks), options);
}

std::shared_ptr<Batch> locate_rows(std::span<const std::shared_ptr<const Source>> sources, std::vector<Pick> picks,
                                   Parts wanted, const ReadOptions& options) {
  auto formats = std::make_shared<BatchFormats>();
  for (const auto& source : sources) {
    BatchFormat& format = formats->emplace_back(source, std::vector<ColumnSpec>(), wanted);
    format.stored_record_bytes = format.lead_bytes = format.row_bytes = 0;  // rows take no room for records
  }
  return read_picks(std::move(formats), std::move(picks), options);
}

}  // namespace penstock
