#include "writer/shards/field_digests.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kGatherBytes = 256U << 10;

template <std::size_t kBytes>
std::byte* gather_fixed(const std::byte* from, std::uint64_t stride, std::uint64_t count, std::byte* to) {
  for (std::uint64_t i = 0; i < count; ++i, from += stride, to += kBytes) std::memcpy(to, from, kBytes);
  return to;
}

}  // namespace

FieldDigests::FieldDigests(const Schema& schema, std::uint64_t stored_record_bytes)
    : record_bytes_(stored_record_bytes), whole_(schema.leaves().size() == 1) {
  for (const Leaf& leaf : schema.leaves()) {
    Field field;
    for (std::uint64_t i = 0; i < leaf.count(); ++i) {
      std::uint64_t offset = leaf.offset_bytes;
      std::uint64_t rest = i;
      for (std::size_t axis = leaf.dims.size(); axis-- > 0; rest /= leaf.dims[axis]) {
        offset += rest % leaf.dims[axis] * leaf.stride_bytes[axis];
      }
      Piece* last = field.pieces.empty() ? nullptr : &field.pieces.back();
      if (last != nullptr && last->offset + last->bytes == offset) {
        last->bytes += leaf.item_bytes;
      } else {
        field.pieces.push_back({offset, leaf.item_bytes});
      }
    }
    whole_ = whole_ && field.pieces.size() == 1 && field.pieces[0].bytes == record_bytes_;
    fields_.push_back(std::move(field));
  }
}

void FieldDigests::update(std::span<const std::byte> records) {
  if (whole_) {
    fields_[0].digest.update(records);
    return;
  }
  const std::uint64_t step = std::max<std::uint64_t>(1, kGatherBytes / record_bytes_) * record_bytes_;
  for (std::uint64_t at = 0; at < records.size(); at += step) {
    const auto part = records.subspan(at, std::min<std::uint64_t>(step, records.size() - at));
    for (Field& field : fields_) {
      gather(field, part);
      field.digest.update(values_);
    }
  }
}

void FieldDigests::gather(const Field& field, std::span<const std::byte> records) {
  const std::uint64_t count = records.size() / record_bytes_;
  std::uint64_t bytes = 0;
  for (const Piece& piece : field.pieces) bytes += piece.bytes;
  values_.resize(count * bytes);
  const std::byte* from = records.data();
  std::byte* to = values_.data();
  if (field.pieces.size() == 1) {  // the common sizes without a call of memcpy a value
    const Piece piece = field.pieces[0];
    from += piece.offset;
    switch (piece.bytes) {
      case 1: gather_fixed<1>(from, record_bytes_, count, to); return;
      case 2: gather_fixed<2>(from, record_bytes_, count, to); return;
      case 4: gather_fixed<4>(from, record_bytes_, count, to); return;
      case 8: gather_fixed<8>(from, record_bytes_, count, to); return;
      default: from -= piece.offset;
    }
  }
  for (std::uint64_t i = 0; i < count; ++i, from += record_bytes_) {
    for (const Piece& piece : field.pieces) {
      std::memcpy(to, from + piece.offset, piece.bytes);
      to += piece.bytes;
    }
  }
}

layout::FieldDigestList FieldDigests::digests() const {
  layout::FieldDigestList all;
  for (const Field& field : fields_) all.push_back(field.digest.bytes());
  return all;
}

}  // namespace penstock::writer
