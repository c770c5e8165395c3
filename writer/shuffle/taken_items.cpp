#include "writer/shuffle/taken_items.h"

#include "core/base/error.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <vector>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kTakenBytes = 1U << 20;
constexpr std::size_t kAhead = 8;  // items

ItemHeader header_at(const std::byte* at) {
  ItemHeader header;
  std::memcpy(&header, at, sizeof(header));
  return header;
}

std::uint64_t behind_header(const ItemHeader& header) {
  return header.large_at == ItemHeader::kInline ? sum_of(header.bytes) : sizeof(DigestBytes);
}

// Offsets of the items, by destination and then as they lie there: counted, not compared, in two passes.
std::vector<std::uint64_t> sorted(std::span<const std::byte> bytes, std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint64_t> next(end - begin + 1);  // where the next item of a destination goes
  const auto each = [&](const auto& use) {
    for (std::uint64_t at = 0; at < bytes.size();) {
      const ItemHeader header = header_at(bytes.data() + at);
      use(header.destination - begin, at);
      at += sizeof(header) + behind_header(header);
    }
  };
  each([&](std::uint64_t place, std::uint64_t) { ++next[place + 1]; });
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint64_t> offsets(next.back());
  each([&](std::uint64_t place, std::uint64_t at) { offsets[next[place]++] = at; });
  return offsets;
}

}  // namespace

class ItemsTaker {
 public:
  ItemsTaker(std::span<const std::byte> bytes, const FileOfItem& file_of) : bytes_(bytes), file_of_(file_of) {}

  void take(std::uint64_t offset, const std::function<void(TakenItem&)>& take) const {
    TakenItem item;
    item.header_ = header_at(bytes_.data() + offset);
    item.behind_ = bytes_.data() + offset + sizeof(ItemHeader);
    const bool is_large = item.header_.large_at != ItemHeader::kInline;
    if (is_large) item.file_ = file_of_(offset);
    take(item);
    if (item.digest_) item.check_digest();
  }

 private:
  const std::span<const std::byte> bytes_;
  const FileOfItem& file_of_;
};

void take_items(std::span<const std::byte> bytes, std::uint64_t begin, std::uint64_t end, const FileOfItem& file_of,
                Progress& progress, const std::function<void(TakenItem&)>& take) {
  const std::vector<std::uint64_t> offsets = sorted(bytes, begin, end);
  const ItemsTaker taker(bytes, file_of);
  for (std::size_t at = 0; at < offsets.size(); ++at) {
    // They lie anywhere in the bucket, so little ones would each wait for memory.
    if (at + kAhead < offsets.size()) __builtin_prefetch(bytes.data() + offsets[at + kAhead]);
    const std::uint64_t taken = sum_of(header_at(bytes.data() + offsets[at]).bytes);
    taker.take(offsets[at], take);
    progress.passed(taken);
  }
}

std::uint64_t TakenItem::offset_of(ItemPart part) const noexcept {
  return std::accumulate(header_.bytes.begin(), header_.bytes.begin() + part, std::uint64_t{0});
}

std::optional<TakenItem::Bytes> TakenItem::whole(ItemPart part) const noexcept {
  if (header_.large_at != ItemHeader::kInline) return std::nullopt;
  return Bytes(behind_ + offset_of(part), header_.bytes[part]);
}

void TakenItem::each(ItemPart part, std::uint64_t unit, const std::function<void(Bytes)>& put) {
  const std::uint64_t step = std::max(unit, kTakenBytes / unit * unit);
  if (!digest_) digest_.emplace();
  std::vector<std::byte> piece;
  assert(read_ == offset_of(part) || header_.bytes[part] == 0);
  for (std::uint64_t at = 0; at < header_.bytes[part]; at += piece.size()) {
    piece.resize(std::min(step, header_.bytes[part] - at));
    file_->read_at(header_.large_at + offset_of(part) + at, piece);
    digest_->update(piece);
    read_ += piece.size();
    put(piece);
  }
}

// Which part is the last one depends on the format, so only here it is known that all were read.
void TakenItem::check_digest() const {
  assert(digest_ && read_ == sum_of(header_.bytes));
  if (std::memcmp(digest_->bytes().data(), behind_, sizeof(DigestBytes)) == 0) return;
  raise(ErrorKind::Corruption, "{}: what was read back is not what was written", file_->shown());
}

}  // namespace penstock::writer
