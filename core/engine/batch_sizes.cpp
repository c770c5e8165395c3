#include "core/engine/batch_sizes.h"

#include "core/base/error.h"

#include <algorithm>

namespace penstock {
namespace {

constexpr std::uint64_t kMostShared = std::uint64_t{1} << 31;

// The records of fixed rows and all columns, as if ragged rows were empty; or what each row takes beside them, if that
// is more. Throws InvalidArgument for more than any memory holds.
std::uint64_t least_bytes(const BatchFormat& format, std::uint64_t rows) {
  const std::uint64_t beside = rows * (sizeof(Row) + sizeof(Pick) + sizeof(std::uint64_t));  // rows < 2^31
  Batch batch;
  batch.plan.rows = rows;
  batch.format = &format;
  return std::max(beside, batch.needed_bytes());
}

}  // namespace

void check_batches(const Job& job, const Share& share, const BatchFormats& formats, std::uint64_t most_bytes,
                   bool is_balanced) {
  std::uint64_t size = 0;
  for (const auto& [position, each] : job.cursor().options().schedule) {
    if (position < job.cursor().run_end()) size = std::max(size, each);
  }
  if (is_balanced && size >= kMostShared) {
    raise(ErrorKind::InvalidArgument,
          "no memory for a global batch of {} rows, which balance= shares out on each rank: use a smaller batch size",
          with_commas(size));
  }
  // A batch may be of any source, so the one with the smallest rows decides.
  const std::uint64_t rows = size / share.world_size;
  std::uint64_t least = UINT64_MAX;
  for (const BatchFormat& format : formats) least = std::min(least, least_bytes(format, rows));
  if (least <= most_bytes) return;
  raise(ErrorKind::InvalidArgument,
        "no memory for a batch of {} rows: it needs at least {} bytes, and max_bytes allows {}: use a smaller {}, or "
        "raise max_bytes",
        with_commas(rows), with_commas(least), with_commas(most_bytes), rows > 1 ? "batch size" : "window");
}

}  // namespace penstock
