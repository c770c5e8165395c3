#include "writer/buckets.h"

#include "core/base/error.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kPieceBytes = 1U << 20;
constexpr std::size_t kAhead = 8;  // items

ItemHeader header_at(const std::byte* at) {
  ItemHeader header;
  std::memcpy(&header, at, sizeof(header));
  return header;
}

std::uint64_t behind_header(const ItemHeader& header) {
  return header.large_at == ItemHeader::kInline ? sum_of(header.bytes) : sizeof(DigestBytes);
}

}  // namespace

Buckets::Buckets(BucketPlan plan, const std::string& folder)
    : plan_(std::move(plan)), file_(folder, plan_.scratch_bytes), filling_(plan_.buckets.size()) {}

void Buckets::refuse_change() const {
  raise(ErrorKind::Corruption, "the dataset changed while it was shuffled: what was read twice was not the same");
}

void Buckets::begin(std::uint64_t destination, const PartBytes& bytes) {
  assert(remaining_ == 0);
  const auto bucket = std::upper_bound(plan_.buckets.begin(), plan_.buckets.end(), destination,
                                       [](std::uint64_t at, const BucketPlan::Bucket& each) { return at < each.end; });
  if (bucket == plan_.buckets.end() || destination < bucket->begin) refuse_change();
  current_ = static_cast<std::size_t>(bucket - plan_.buckets.begin());
  remaining_ = sum_of(bytes);
  is_large_ = remaining_ > plan_.large_above;
  ItemHeader header{destination, ItemHeader::kInline, bytes};
  if (is_large_) {
    header.large_at = plan_.large_offset + large_filled_;
    if (remaining_ > plan_.scratch_bytes - header.large_at) refuse_change();
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
  if (filling.buffer.size() > planned.bytes - filling.filled) refuse_change();
  file_.write_at(planned.offset + filling.filled, filling.buffer);
  filling.digest.update(filling.buffer);
  filling.filled += filling.buffer.size();
  filling.buffer.clear();
}

void Buckets::finish() {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < filling_.size(); ++i) {
    flush(i);
    if (filling_[i].filled != plan_.buckets[i].bytes) refuse_change();
    digests_.push_back(filling_[i].digest.bytes());
    most = std::max(most, plan_.buckets[i].bytes);
  }
  std::vector<Filling>().swap(filling_);
  loaded_ = std::make_unique_for_overwrite<std::byte[]>(most);
}

void Buckets::load(const BucketPlan::Bucket& bucket, const DigestBytes& wanted, Progress& progress) {
  Digest digest;
  for (std::uint64_t at = 0; at < bucket.bytes;) {
    const std::span part(loaded_.get() + at, std::min(kPieceBytes, bucket.bytes - at));
    file_.read_at(bucket.offset + at, part);
    digest.update(part);
    at += part.size();
    progress.passed(part.size());
  }
  if (digest.bytes() == wanted) return;
  raise(ErrorKind::Corruption, "{}: what was read back is not what was written", file_.shown());
}

// Offsets of the items, by destination and then as they lie there: counted, not compared, in two passes.
std::vector<std::uint64_t> Buckets::sorted(const BucketPlan::Bucket& bucket) const {
  std::vector<std::uint64_t> next(bucket.end - bucket.begin + 1);  // where the next item of a destination goes
  const auto each = [&](const auto& use) {
    for (std::uint64_t at = 0; at < bucket.bytes;) {
      const ItemHeader header = header_at(loaded_.get() + at);
      use(header.destination - bucket.begin, at);
      at += sizeof(header) + behind_header(header);
    }
  };
  each([&](std::uint64_t place, std::uint64_t) { ++next[place + 1]; });
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint64_t> offsets(bucket.items);
  each([&](std::uint64_t place, std::uint64_t at) { offsets[next[place]++] = at; });
  return offsets;
}

void Buckets::take_all(Progress& progress, const std::function<void(Item&)>& take) {
  for (std::size_t i = 0; i < plan_.buckets.size(); ++i) {
    const BucketPlan::Bucket& bucket = plan_.buckets[i];
    load(bucket, digests_[i], progress);
    if (i + 1 < plan_.buckets.size()) file_.want(plan_.buckets[i + 1].offset, plan_.buckets[i + 1].bytes);
    const std::vector<std::uint64_t> offsets = sorted(bucket);
    for (std::size_t at = 0; at < offsets.size(); ++at) {
      const std::uint64_t offset = offsets[at];
      // They lie anywhere in the bucket, so little ones would each wait for memory.
      if (at + kAhead < offsets.size()) __builtin_prefetch(loaded_.get() + offsets[at + kAhead]);
      Item item;
      item.header_ = header_at(loaded_.get() + offset);
      item.behind_ = loaded_.get() + offset + sizeof(ItemHeader);
      item.buckets_ = this;
      take(item);
      if (item.header_.large_at != ItemHeader::kInline) {
        item.check_digest();
        file_.give_back(item.header_.large_at, sum_of(item.header_.bytes));
      }
      progress.passed(sum_of(item.header_.bytes));
    }
    file_.give_back(bucket.offset, bucket.bytes);
  }
}

std::uint64_t Buckets::Item::offset_of(ItemPart part) const noexcept {
  return std::accumulate(header_.bytes.begin(), header_.bytes.begin() + part, std::uint64_t{0});
}

std::optional<Buckets::Bytes> Buckets::Item::whole(ItemPart part) const noexcept {
  if (header_.large_at != ItemHeader::kInline) return std::nullopt;
  return Bytes(behind_ + offset_of(part), header_.bytes[part]);
}

void Buckets::Item::each(ItemPart part, std::uint64_t unit, const std::function<void(Bytes)>& put) {
  const std::uint64_t step = std::max(unit, kPieceBytes / unit * unit);
  if (!digest_) digest_.emplace();
  std::vector<std::byte> piece;
  assert(read_ == offset_of(part) || header_.bytes[part] == 0);
  for (std::uint64_t at = 0; at < header_.bytes[part]; at += piece.size()) {
    piece.resize(std::min(step, header_.bytes[part] - at));
    buckets_->file_.read_at(header_.large_at + offset_of(part) + at, piece);
    digest_->update(piece);
    read_ += piece.size();
    put(piece);
  }
}

// Which part is the last one depends on the format, so only here it is known that all were read.
void Buckets::Item::check_digest() const {
  assert(digest_ && read_ == sum_of(header_.bytes));
  if (std::memcmp(digest_->bytes().data(), behind_, sizeof(DigestBytes)) == 0) return;
  raise(ErrorKind::Corruption, "{}: what was read back is not what was written", buckets_->file_.shown());
}

}  // namespace penstock::writer
