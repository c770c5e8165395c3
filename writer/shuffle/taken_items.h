// Taken items: those of a bucket that was read back into memory, in the order of their destinations.
//
// A large item's parts lie in a scratch file and pass through memory piece by piece; of all others the bucket's bytes
// are the item. One thread at a time.
#pragma once

#include "core/base/digest.h"
#include "writer/files/progress.h"
#include "writer/files/scratch_file.h"
#include "writer/shuffle/bucket_item.h"
#include "writer/shuffle/bucket_plan.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace penstock::writer {

/// An item that is taken. Valid while the function runs that it is given to.
class TakenItem {
 public:
  using Bytes = std::span<const std::byte>;

  [[nodiscard]] std::uint64_t destination() const noexcept { return header_.destination; }
  [[nodiscard]] std::uint64_t bytes(ItemPart part) const noexcept { return header_.bytes[part]; }
  [[nodiscard]] const ItemHeader& header() const noexcept { return header_; }
  /// The part at once, if the item is not a large one; else nothing.
  [[nodiscard]] std::optional<Bytes> whole(ItemPart part) const noexcept;
  /// Calls put(piece) for all of the part, in pieces of at most 1 MiB whose sizes are multiples of `unit`. Of a large
  /// item each part that has bytes, or none, is asked for once, in order: take_items() then compares the digest. Throws
  /// IoError.
  void each(ItemPart part, std::uint64_t unit, const std::function<void(Bytes)>& put);

 private:
  friend class ItemsTaker;
  [[nodiscard]] std::uint64_t offset_of(ItemPart part) const noexcept;
  void check_digest() const;  // of a large one that was read

  ItemHeader header_;
  const std::byte* behind_ = nullptr;        // the header
  std::shared_ptr<const ScratchFile> file_;  // of a large one
  std::uint64_t read_ = 0;                   // bytes of a large one
  std::optional<Digest> digest_;             // of those
};

/// The file in which the large item lies whose header is at this offset of the bucket. Throws NotFound, IoError.
using FileOfItem = std::function<std::shared_ptr<const ScratchFile>(std::uint64_t offset)>;

/// Calls take(item) for all items of a bucket for the destinations [begin, end), whose bytes are as they were put
/// aside: ascending by destination, and for equal ones in the order of the bytes. Beside them the memory is kTableBytes
/// an item. Throws what `take` and `file_of` do; IoError; Corruption after a large item whose parts are not as they
/// were.
void take_items(std::span<const std::byte> bytes, std::uint64_t begin, std::uint64_t end, const FileOfItem& file_of,
                Progress& progress, const std::function<void(TakenItem&)>& take);

}  // namespace penstock::writer
