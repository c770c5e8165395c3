// Buckets: items put aside by destination, then taken bucket by bucket in the order of their destinations.
//
// All lie in one scratch file, each where the plan says, written through a buffer a bucket. What is read back is
// compared with a digest of what was written. One thread at a time.
#pragma once

#include "core/base/digest.h"
#include "writer/files/progress.h"
#include "writer/files/scratch_file.h"
#include "writer/shuffle/bucket_item.h"
#include "writer/shuffle/bucket_plan.h"
#include "writer/shuffle/taken_items.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

/// Throws Corruption: what was read twice was not the same.
[[noreturn]] void refuse_changed_input();

class Buckets {
 public:
  using Bytes = std::span<const std::byte>;

  /// Makes the scratch file in `folder`. Throws NotFound, IoError.
  Buckets(BucketPlan plan, const std::string& folder);
  /// The same in a file that is there, for others who take the items: see writer/shuffle/put_aside.h.
  Buckets(BucketPlan plan, ScratchFile file);

  /// Begins an item; put() then gives its parts end to end, in any pieces. Throws IoError; Corruption where there is
  /// more than was planned: the input changed while it was read.
  void begin(std::uint64_t destination, const PartBytes& bytes);
  void put(Bytes piece);
  /// After the last item. Throws Corruption where there was less than was planned.
  void finish();

  using Item = TakenItem;
  /// Calls take(item) for all items, ascending by destination, and for equal ones in the order of begin(). Gives the
  /// scratch file's room back on the way. Throws IoError; Corruption before an item, or after a large one, of which not
  /// the bytes that were written were read back.
  void take_all(Progress& progress, const std::function<void(Item&)>& take);

  [[nodiscard]] const BucketPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] ScratchFile& file() noexcept { return file_; }
  /// After finish(): the digest of each bucket's bytes.
  [[nodiscard]] const std::vector<DigestBytes>& digests() const noexcept { return digests_; }

 private:
  struct Filling {
    std::vector<std::byte> buffer;
    std::uint64_t filled = 0;  // in the file
    Digest digest;
  };

  void append(std::size_t bucket, Bytes bytes);
  void flush(std::size_t bucket);
  void load(const BucketPlan::Bucket& bucket, const DigestBytes& wanted, Progress& progress);

  BucketPlan plan_;
  ScratchFile file_;
  std::vector<Filling> filling_;
  std::vector<DigestBytes> digests_;
  std::size_t current_ = 0;      // the bucket of the item under way
  std::uint64_t remaining_ = 0;  // bytes that it still wants
  bool is_large_ = false;
  Digest large_digest_;
  std::uint64_t large_filled_ = 0;
  std::unique_ptr<std::byte[]> loaded_;
};

}  // namespace penstock::writer
