// BucketPlan: into which buckets the destinations of a shuffle are cut, so that each bucket fits into memory.
//
// Items are counted first (BucketPlanner::add), so the size of each bucket is known before anything is put into it and
// all of them lie in one file, end to end. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::writer {

struct BucketPlan {
  struct Bucket {
    std::uint64_t begin = 0;  // destinations [begin, end)
    std::uint64_t end = 0;
    std::uint64_t offset = 0;  // in the scratch file
    std::uint64_t bytes = 0;
    std::uint64_t items = 0;
  };
  std::vector<Bucket> buckets;      // by destination; none is empty
  std::uint64_t buffer_bytes = 0;   // of each bucket while they are filled
  std::uint64_t large_above = 0;    // an item of more bytes lies outside its bucket
  std::uint64_t large_offset = 0;   // where those lie
  std::uint64_t scratch_bytes = 0;  // of all
};

/// What a bucket in memory may take.
inline std::uint64_t bucket_limit(std::uint64_t memory_bytes) noexcept {
  return memory_bytes / 4 * 3;
}

/// What is to be put into buckets: bytes, what they cost of memory, the most of what cannot be parted.
struct BucketsNeed {
  std::uint64_t bytes = 0;
  std::uint64_t cost = 0;
  std::uint64_t most = 0;
  std::size_t buckets = 0;
  std::size_t least_buckets = 0;  // however much memory there is
};

/// Throws InvalidArgument where a bucket does not fit into the memory, or the buffers of all into a half of it, with
/// what is needed.
void check_memory(const BucketsNeed& need, std::uint64_t memory_bytes);

/// Throws InvalidArgument below BucketPlanner::kLeastMemory.
void refuse_little_memory(std::uint64_t memory_bytes);

class BucketPlanner {
 public:
  /// For destinations [first, end) and so much memory, of which buckets being filled take a half, an item less than an
  /// eighth, and a bucket in memory three quarters. Throws InvalidArgument below kLeastMemory.
  BucketPlanner(std::uint64_t first, std::uint64_t end, std::uint64_t memory_bytes);

  /// An item that takes `bytes` beside its header.
  void add(std::uint64_t destination, std::uint64_t bytes);

  /// Throws InvalidArgument where the buffers of the buckets that are needed do not fit, with the memory needed.
  [[nodiscard]] BucketPlan plan() const;

  static constexpr std::uint64_t kLeastMemory = 64 << 10;
  static constexpr std::uint64_t kLeastBuffer = 4 << 10;

 private:
  struct Range {
    std::uint64_t bytes = 0;
    std::uint64_t items = 0;
    [[nodiscard]] std::uint64_t cost() const noexcept;
  };
  void add_bucket(BucketPlan& plan, const BucketPlan::Bucket& bucket) const;
  void check(const BucketPlan& plan) const;

  const std::uint64_t first_;
  const std::uint64_t end_;
  const std::uint64_t memory_bytes_;
  const std::uint64_t large_above_;
  std::uint64_t width_ = 1;  // destinations of a range
  std::vector<Range> ranges_;
  std::uint64_t large_bytes_ = 0;
};

}  // namespace penstock::writer
