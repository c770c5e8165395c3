#include "writer/shuffle/buckets.h"

#include "core/base/error.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kLoadedBytes = 1U << 20;

}  // namespace

Buckets::Buckets(BucketPlan plan, const std::string& folder)
    : plan_(std::move(plan)), file_(folder, plan_.scratch_bytes), filling_(plan_.buckets.size()) {}

Buckets::Buckets(BucketPlan plan, ScratchFile file)
    : plan_(std::move(plan)), file_(std::move(file)), filling_(plan_.buckets.size()) {}

void refuse_changed_input() {
  raise(ErrorKind::Corruption, "the dataset changed while it was shuffled: what was read twice was not the same");
}

void Buckets::begin(std::uint64_t destination, const PartBytes& bytes) {
  assert(remaining_ == 0);
  const auto bucket = std::upper_bound(plan_.buckets.begin(), plan_.buckets.end(), destination,
                                       [](std::uint64_t at, const BucketPlan::Bucket& each) { return at < each.end; });
  if (bucket == plan_.buckets.end() || destination < bucket->begin) refuse_changed_input();
  current_ = static_cast<std::size_t>(bucket - plan_.buckets.begin());
  remaining_ = sum_of(bytes);
  is_large_ = remaining_ > plan_.large_above;
  ItemHeader header{destination, ItemHeader::kInline, bytes};
  if (is_large_) {
    header.large_at = plan_.large_offset + large_filled_;
    if (remaining_ > plan_.scratch_bytes - header.large_at) refuse_changed_input();
    large_digest_ = Digest();
  }
  append(current_, std::as_bytes(std::span(&header, 1)));
}

void Buckets::put(Bytes piece) {
  assert(piece.size() <= remaining_);
  remaining_ -= piece.size();
  if (!is_large_) return append(current_, piece);
  file_.write_at(plan_.large_offset + large_filled_, piece);
  large_filled_ += piece.size();
  large_digest_.update(piece);
  if (remaining_ == 0) append(current_, large_digest_.bytes());
}

void Buckets::append(std::size_t bucket, Bytes bytes) {
  Filling& filling = filling_[bucket];
  if (filling.buffer.capacity() == 0) filling.buffer.reserve(plan_.buffer_bytes);
  while (!bytes.empty()) {
    const std::size_t part = std::min<std::size_t>(bytes.size(), plan_.buffer_bytes - filling.buffer.size());
    filling.buffer.insert(filling.buffer.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (filling.buffer.size() == plan_.buffer_bytes) flush(bucket);
  }
}

void Buckets::flush(std::size_t bucket) {
  Filling& filling = filling_[bucket];
  const BucketPlan::Bucket& planned = plan_.buckets[bucket];
  if (filling.buffer.size() > planned.bytes - filling.filled) refuse_changed_input();
  file_.write_at(planned.offset + filling.filled, filling.buffer);
  filling.digest.update(filling.buffer);
  filling.filled += filling.buffer.size();
  filling.buffer.clear();
}

void Buckets::finish() {
  for (std::size_t i = 0; i < filling_.size(); ++i) {
    flush(i);
    if (filling_[i].filled != plan_.buckets[i].bytes) refuse_changed_input();
    digests_.push_back(filling_[i].digest.bytes());
  }
  std::vector<Filling>().swap(filling_);
}

void Buckets::load(const BucketPlan::Bucket& bucket, const DigestBytes& wanted, Progress& progress) {
  Digest digest;
  for (std::uint64_t at = 0; at < bucket.bytes;) {
    const std::span part(loaded_.get() + at, std::min(kLoadedBytes, bucket.bytes - at));
    file_.read_at(bucket.offset + at, part);
    digest.update(part);
    at += part.size();
    progress.passed(part.size());
  }
  if (digest.bytes() == wanted) return;
  raise(ErrorKind::Corruption, "{}: what was read back is not what was written", file_.shown());
}

void Buckets::take_all(Progress& progress, const std::function<void(Item&)>& take) {
  std::uint64_t most = 0;
  for (const BucketPlan::Bucket& each : plan_.buckets) most = std::max(most, each.bytes);
  loaded_ = std::make_unique_for_overwrite<std::byte[]>(most);
  const auto here = [this](std::uint64_t) {
    return std::shared_ptr<const ScratchFile>(std::shared_ptr<void>(), &file_);  // which outlives the item
  };
  for (std::size_t i = 0; i < plan_.buckets.size(); ++i) {
    const BucketPlan::Bucket& bucket = plan_.buckets[i];
    load(bucket, digests_[i], progress);
    if (i + 1 < plan_.buckets.size()) file_.want(plan_.buckets[i + 1].offset, plan_.buckets[i + 1].bytes);
    take_items({loaded_.get(), bucket.bytes}, bucket.begin, bucket.end, here, progress, [&](Item& item) {
      take(item);
      if (item.header().large_at != ItemHeader::kInline) {
        file_.give_back(item.header().large_at, sum_of(item.header().bytes));
      }
    });
    file_.give_back(bucket.offset, bucket.bytes);
  }
}

}  // namespace penstock::writer
