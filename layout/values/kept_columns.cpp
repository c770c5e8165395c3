#include "layout/values/kept_columns.h"

#include "core/base/align.h"

#include <algorithm>
#include <numeric>

namespace penstock::layout {
namespace {

// Of one column in all shards; UINT64_MAX where that is more than there can be.
std::uint64_t most_bytes(const Dataset& dataset, std::size_t column) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < dataset.shards.size(); ++i) {
    const Shard& shard = dataset.shards[i];
    if (dataset.column_table->kept(i, column) != nullptr) continue;
    const std::uint64_t stored = shard.entries * dataset.column_table->place(i, column).value_bytes;
    // It may begin and end inside of blocks, and blocks have pointers.
    const std::uint64_t bytes = align_up(stored, KeptBlocks::kBlock) + KeptBlocks::kBlock;
    if (__builtin_add_overflow(sum, bytes + bytes / 256, &sum) || sum > INT64_MAX) return UINT64_MAX;
  }
  return sum;
}

// Columns of other formats lie anywhere in their file.
bool are_ours(const Dataset& dataset) {
  return std::all_of(dataset.shards.begin(), dataset.shards.end(),
                     [](const Shard& shard) { return shard.shard_columns->arrays.empty(); });
}

}  // namespace

KeptColumns::KeptColumns(const Dataset& dataset, const std::vector<std::size_t>& columns)
    : dataset_(dataset),
      columns_(columns),
      shared_(are_ours(dataset)),
      needs_(columns.size()),
      made_(new std::atomic<KeptBlocks*>[count()] {}) {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(columns.size());
  for (const std::size_t column : columns) bytes.push_back(most_bytes(dataset, column));
  std::vector<std::size_t> order(columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bytes[a] < bytes[b]; });
  std::vector<std::uint64_t> steps;
  std::uint64_t sum = 0;
  for (const std::size_t i : order) {
    const bool fits = !__builtin_add_overflow(sum, bytes[i], &sum) && sum <= INT64_MAX;
    if (!fits) sum = INT64_MAX;
    needs_[i] = fits ? sum : UINT64_MAX;
    if (fits) steps.push_back(sum);
  }
  allowance_ = std::make_shared<Allowance>(std::move(steps));
}

KeptColumns::~KeptColumns() {
  for (std::size_t i = 0; i < count(); ++i) delete made_[i].load();
}

KeptBlocks* KeptColumns::make(std::size_t at, std::uint64_t shard, std::size_t i) const {
  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (!shared_ && c != i) continue;
    const ColumnPlace& place = dataset_.column_table->place(shard, columns_[c]);
    begin = std::min(begin, place.offset);
    end = std::max(end, place.offset + dataset_.shards[shard].entries * place.value_bytes);
  }
  auto made = std::make_unique<KeptBlocks>(begin, end);
  KeptBlocks* other = nullptr;
  return made_[at].compare_exchange_strong(other, made.get(), std::memory_order_acq_rel) ? made.release() : other;
}

}  // namespace penstock::layout
