#include "writer/shuffle/shuffle_cuts.h"

#include "core/base/error.h"
#include "writer/shuffle/bucket_item.h"
#include "writer/shuffle/bucket_plan.h"

#include <algorithm>
#include <utility>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kLeastBlock = 1 << 18;  // destinations

// What goes to one destination.
struct Size {
  std::uint64_t bytes = 0;  // in the shard
  std::uint64_t cost = 0;   // of memory, in its bucket; 0: nothing goes there
};

class Cutter {
 public:
  Cutter(std::uint64_t memory_bytes, std::uint64_t shard_bytes)
      : memory_bytes_(memory_bytes), shard_bytes_(shard_bytes) {}

  // The next destination.
  void add(std::uint64_t destination, const Size& size) {
    if (size.cost == 0) return;
    if (shard_.cost != 0 && shard_.bytes >= shard_bytes_) end_shard(destination);
    if (bucket_cost_ != 0 && bucket_cost_ + size.cost > bucket_limit(memory_bytes_)) end_bucket(destination);
    shard_.bytes += size.bytes;
    shard_.cost += size.cost;
    bucket_cost_ += size.cost;
    most_ = std::max(most_, size.cost);
    all_.bytes += size.bytes;
    all_.cost += size.cost;
  }

  ShuffleCuts finish(std::uint64_t end) {
    if (shard_.cost != 0 || cuts_.shards.empty()) end_shard(end);
    const auto whole = static_cast<std::size_t>(std::count(is_whole_.begin(), is_whole_.end(), true));
    if (cuts_.buckets.size() > memory_bytes_ / 2 / BucketPlanner::kLeastBuffer) merge();
    check_memory({.bytes = all_.bytes,
                  .cost = all_.cost,
                  .most = most_,
                  .buckets = cuts_.buckets.size(),
                  .least_buckets = is_whole_.size() - whole},
                 memory_bytes_);
    return std::move(cuts_);
  }

 private:
  void end_bucket(std::uint64_t end) {
    if (bucket_cost_ != 0) {
      cuts_.buckets.push_back({bucket_begin_, end});
      costs_.push_back(bucket_cost_);
      is_whole_.push_back(false);
    }
    bucket_begin_ = end;
    bucket_cost_ = 0;
  }

  void end_shard(std::uint64_t end) {
    end_bucket(end);
    if (shard_.cost != 0) is_whole_.back() = cuts_.buckets.back().begin <= shard_begin_;
    cuts_.shards.push_back({{shard_begin_, end}, shard_.bytes});
    shard_begin_ = end;
    shard_ = {};
  }

  // Makes buckets that are whole shards one with their neighbours, as far as the memory allows.
  void merge() {
    std::vector<BucketRange> merged;
    bool may_grow = false;  // the last one
    std::uint64_t cost = 0;
    for (std::size_t i = 0; i < costs_.size(); ++i) {
      if (may_grow && is_whole_[i] && cost + costs_[i] <= bucket_limit(memory_bytes_)) {
        merged.back().end = cuts_.buckets[i].end;
        cost += costs_[i];
        continue;
      }
      merged.push_back(cuts_.buckets[i]);
      cost = costs_[i];
      may_grow = is_whole_[i];
    }
    cuts_.buckets = std::move(merged);
  }

  const std::uint64_t memory_bytes_;
  const std::uint64_t shard_bytes_;
  ShuffleCuts cuts_;
  std::vector<std::uint64_t> costs_;  // of each bucket
  std::vector<bool> is_whole_;        // it is a shard
  std::uint64_t shard_begin_ = 0;
  Size shard_;
  std::uint64_t bucket_begin_ = 0;
  std::uint64_t bucket_cost_ = 0;
  std::uint64_t most_ = 0;
  Size all_;
};

}  // namespace

ShuffleCuts cut_shuffle(const ShuffleInput& input, std::uint64_t memory_bytes, std::uint64_t shard_bytes,
                        Progress& progress) {
  refuse_little_memory(memory_bytes);
  const std::uint64_t large_above = memory_bytes / 8;
  const std::uint64_t block = std::max<std::uint64_t>(kLeastBlock, memory_bytes / sizeof(Size));
  Cutter cutter(memory_bytes, shard_bytes);
  std::vector<Size> sizes;
  for (std::uint64_t first = 0; first < input.end(); first += sizes.size()) {
    sizes.assign(std::min(block, input.end() - first), {});
    input.each_piece(0, input.manifest().shards.size(), progress, [&](const Piece& piece, std::uint64_t destination) {
      if (destination < first || destination - first >= sizes.size()) return;
      Size& size = sizes[destination - first];
      const std::uint64_t bytes = input.bytes_of(piece);
      size.bytes += bytes;
      size.cost += sizeof(ItemHeader) + kTableBytes + (bytes > large_above ? sizeof(DigestBytes) : bytes);
    });
    for (std::uint64_t i = 0; i < sizes.size(); ++i) cutter.add(first + i, sizes[i]);
  }
  return cutter.finish(input.end());
}

}  // namespace penstock::writer
