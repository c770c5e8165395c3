#include "writer/shuffle/bucket_plan.h"

#include "core/base/error.h"
#include "writer/shuffle/bucket_item.h"

#include <algorithm>
#include <cmath>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kMaxBuffer = 1 << 20;
constexpr std::uint64_t kMaxRanges = 1 << 20;

}  // namespace

std::uint64_t BucketPlanner::Range::cost() const noexcept {
  return bytes + items * kTableBytes;
}

void refuse_little_memory(std::uint64_t memory_bytes) {
  if (memory_bytes >= BucketPlanner::kLeastMemory) return;
  raise(ErrorKind::InvalidArgument, "memory of {} bytes, must be at least {}", with_commas(memory_bytes),
        with_commas(BucketPlanner::kLeastMemory));
}

void check_memory(const BucketsNeed& need, std::uint64_t memory_bytes) {
  constexpr std::uint64_t kLeastBuffer = BucketPlanner::kLeastBuffer;
  const bool has_buffers = need.buckets == 0 || memory_bytes / 2 / need.buckets >= kLeastBuffer;
  if (has_buffers && need.most <= bucket_limit(memory_bytes)) return;
  // b buckets of 3/4 m hold all, and their buffers fit into m / 2. What is cut off at their ends is less than a half.
  const double buckets = 1.5 * 4.0 / 3.0 * static_cast<double>(need.cost);
  const auto for_all = static_cast<std::uint64_t>(std::sqrt(buckets * 2.0 * static_cast<double>(kLeastBuffer)));
  const std::uint64_t for_buffers = for_all + 2 * kLeastBuffer * need.least_buckets;
  const std::uint64_t needed = std::max(for_buffers, std::min(2 * need.most, 2 * memory_bytes));
  constexpr std::uint64_t kMib = 1 << 20;
  raise(ErrorKind::InvalidArgument, "{} bytes to be shuffled need more than {} bytes of memory: give {} MiB",
        with_commas(need.bytes), with_commas(memory_bytes), with_commas((needed + kMib - 1) / kMib));
}

BucketPlanner::BucketPlanner(std::uint64_t first, std::uint64_t end, std::uint64_t memory_bytes)
    : first_(first), end_(end), memory_bytes_(memory_bytes), large_above_(memory_bytes / 8) {
  refuse_little_memory(memory_bytes);
  const std::uint64_t most = std::min(kMaxRanges, memory_bytes / 16 / sizeof(Range));
  width_ = std::max<std::uint64_t>(1, (end - first + most - 1) / most);
  ranges_.resize((end - first + width_ - 1) / width_);
}

void BucketPlanner::add(std::uint64_t destination, std::uint64_t bytes) {
  Range& range = ranges_[(destination - first_) / width_];
  ++range.items;
  range.bytes += sizeof(ItemHeader) + (bytes > large_above_ ? sizeof(DigestBytes) : bytes);
  if (bytes > large_above_) large_bytes_ += bytes;
}

void BucketPlanner::add_bucket(BucketPlan& plan, const BucketPlan::Bucket& bucket) const {
  if (bucket.items == 0) return;
  plan.buckets.push_back(bucket);
  plan.buckets.back().offset = plan.large_offset;
  plan.large_offset += bucket.bytes;
}

BucketPlan BucketPlanner::plan() const {
  BucketPlan plan;
  BucketPlan::Bucket bucket{first_, first_};
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const Range both{bucket.bytes + ranges_[i].bytes, bucket.items + ranges_[i].items};
    if (both.cost() > bucket_limit(memory_bytes_)) {
      add_bucket(plan, bucket);
      bucket = {bucket.end, bucket.end};
    }
    bucket.end = std::min(end_, first_ + (i + 1) * width_);
    bucket.bytes += ranges_[i].bytes;
    bucket.items += ranges_[i].items;
  }
  add_bucket(plan, bucket);
  plan.large_above = large_above_;
  plan.scratch_bytes = plan.large_offset + large_bytes_;
  plan.buffer_bytes = std::min(kMaxBuffer, memory_bytes_ / 2 / std::max<std::size_t>(1, plan.buckets.size()));
  check(plan);
  return plan;
}

void BucketPlanner::check(const BucketPlan& plan) const {
  Range most;
  Range all;
  for (const Range& range : ranges_) {
    most = range.cost() > most.cost() ? range : most;
    all.bytes += range.bytes;
    all.items += range.items;
  }
  check_memory({.bytes = all.bytes + large_bytes_,
                .cost = all.cost(),
                .most = most.cost(),
                .buckets = plan.buckets.size(),
                .least_buckets = 0},
               memory_bytes_);
}

}  // namespace penstock::writer
