// Files of what was put aside: a process writes one, with the items of its part of the input in buckets; others take a
// bucket of all files.
//
// At the file's beginning stands for each bucket where it lies, how long it is and the digest of its bytes. One thread
// at a time.
#pragma once

#include "writer/files/progress.h"
#include "writer/shuffle/buckets.h"
#include "writer/shuffle/taken_items.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penstock::writer {

/// The destinations of a bucket.
struct BucketRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The bucket of a destination, of `buckets` that ascend; their number where none has it.
std::size_t bucket_of(const std::vector<BucketRange>& buckets, std::uint64_t destination) noexcept;

/// Counts the items of each bucket, so that the file's size is known.
class AsidePlanner {
 public:
  /// For so much memory, of which buffers of the buckets take a half and an item less than an eighth.
  AsidePlanner(const std::vector<BucketRange>& buckets, std::uint64_t memory_bytes);

  /// An item that takes `bytes` beside its header; nothing where no bucket has its destination.
  void add(std::uint64_t destination, std::uint64_t bytes);
  [[nodiscard]] BucketPlan plan() const;

 private:
  const std::vector<BucketRange>& buckets_;
  const std::uint64_t memory_bytes_;
  BucketPlan plan_;
  std::uint64_t large_bytes_ = 0;
};

/// Writes a file whole, under another name until then. `put` gives the items. What is there already is replaced.
/// `is_synced`: the disk has it when this returns. Throws IoError; Corruption where not what was planned is put.
void write_aside(const std::string& path, BucketPlan plan, bool is_synced, const std::function<void(Buckets&)>& put);

class AsideFiles {
 public:
  /// In the order of the parts of the input.
  explicit AsideFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  /// take_items() of bucket `number`, which has these destinations, of all files. Throws NotFound, IoError; Corruption
  /// where not the bytes that were written were read back.
  void take(std::size_t number, const BucketRange& range, Progress& progress,
            const std::function<void(TakenItem&)>& take) const;

 private:
  std::vector<std::string> paths_;
};

}  // namespace penstock::writer
