#include "core/engine/batch_sizes.h"

#include "core/base/error.h"
#include "core/engine/batch_memory.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr std::uint64_t kMostShared = std::uint64_t{1} << 31;

// Beside its records and columns: the row, what it is, where it stands; a block of its arena where its source keeps a
// state from one round to the next; a span; and what it is read into where rows share fetches.
std::uint64_t least_bytes_of_row(const BatchFormat& format, bool shares_fetches) {
  std::uint64_t bytes = sizeof(Row) + sizeof(Pick) + sizeof(std::uint64_t);
  const SourceInfo& info = format.source->info();
  const bool finds_spans = has_spans(format.wanted) && info.keeps;  // others may have none, as token streams
  if (format.shape.ragged || finds_spans || info.packed_multiple > 0) bytes += Arena::kLeastBytes;
  if (finds_spans) bytes += sizeof(Span);
  if (shares_fetches) bytes += sizeof(Row) + (format.shape.ragged ? 0 : format.row_bytes);
  return bytes;
}

// As if ragged rows were empty, and each had one span where spans are wanted. Throws InvalidArgument for more than any
// memory holds.
std::uint64_t least_bytes(const BatchFormat& format, std::uint64_t rows, bool shares_fetches) {
  Batch batch;
  batch.plan.rows = rows;
  batch.format = &format;
  const std::uint64_t arrays = needed_bytes(batch);  // at most 2^56, as are those of fetches; rows < 2^31
  return arrays + rows * least_bytes_of_row(format, shares_fetches);
}

}  // namespace

void check_batches(const Job& job, const Share& share, const BatchFormats& formats, std::uint64_t most_bytes,
                   bool is_balanced) {
  std::uint64_t size = 0;
  std::uint64_t begin = 0;
  for (const auto& [position, each] : job.cursor().options().schedule) {
    if (position >= job.cursor().run_end() || each <= size) continue;
    size = each;
    begin = position;
  }
  if (is_balanced && size >= kMostShared) {
    raise(ErrorKind::InvalidArgument,
          "no memory for a global batch of {} rows, which balance= shares out on each rank: use a smaller batch size",
          with_commas(size));
  }
  // A batch may be of any source, so the one with the smallest rows decides.
  const std::uint64_t rows = batch_rows(size, share);
  std::uint64_t least = UINT64_MAX;
  const bool shares_fetches = job.order().fetch_end(begin) > begin + 1;
  for (const BatchFormat& format : formats) least = std::min(least, least_bytes(format, rows, shares_fetches));
  if (least <= most_bytes) return;
  raise(ErrorKind::InvalidArgument,
        "no memory for a batch of {} rows: it needs at least {} bytes, and max_bytes allows {}: use a smaller {}, or "
        "raise max_bytes",
        with_commas(rows), with_commas(least), with_commas(most_bytes), rows > 1 ? "batch size" : "window");
}

}  // namespace penstock
