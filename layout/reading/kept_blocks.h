// KeptBlocks: a small file's bytes, kept in memory block by block as they are read, for all rows that come later.
//
// Every window looks into its shard's directory and index, some hundred bytes at a place of its own. A device and the
// page cache read whole pages for that; so does this, once, and saves the later windows of that page the system call
// and the wait for it. What is kept stays, so it is for files that fit into memory (KeptMetadata). Any thread.
#pragma once

#include "core/rows/source.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace penstock::layout {

class KeptBlocks {
 public:
  static constexpr std::uint64_t kBlock = 4096;  // bytes

  /// Takes no memory before there is something to keep: `file` may say any size, and be shorter.
  explicit KeptBlocks(const File& file);
  /// Of those blocks alone that have bytes [begin, end) of a file: others are not asked for.
  KeptBlocks(std::uint64_t begin, std::uint64_t end) noexcept;
  /// That one of `file` takes when it keeps all of it; UINT64_MAX where that is more than there can be.
  [[nodiscard]] static std::uint64_t most_bytes(const File& file) noexcept;
  ~KeptBlocks();
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;

  /// `size` bytes from `offset` on, inside the file, if all of them are kept: in place, or copied to `room` if no block
  /// has all of them. Else null.
  [[nodiscard]] const std::byte* find(std::uint64_t offset, std::uint64_t size, std::byte* room) const noexcept;
  /// Whether a row of `group` has asked this before for all blocks of a range that is not kept: its reads are on their
  /// way, and end before the group's next round. A hint: the last group that asked for a block is remembered alone, and
  /// what was read may fail, or find no memory to be kept in.
  bool is_expected(std::uint64_t offset, std::uint64_t size, const void* group) noexcept;
  /// Has the core fetch what is kept at `offset` into its cache, without waiting.
  void prefetch(std::uint64_t offset) const noexcept;
  /// Copies the block at `offset`, which ends at `end` if it is the last one; false if it is not kept.
  bool copy_block(std::uint64_t offset, std::uint64_t end, std::byte* to) const noexcept;
  /// Keeps whole blocks from `offset` on; those that there is no memory for are not kept.
  void keep(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

 private:
  struct Block {
    std::atomic<const std::byte*> bytes{nullptr};  // set once
    std::atomic<const void*> group{nullptr};       // that expects it
  };

  [[nodiscard]] const std::byte* block(std::uint64_t i) const noexcept;
  Block* make_blocks() noexcept;

  const std::uint64_t first_ = 0;  // number of the first block
  const std::uint64_t count_;
  std::atomic<Block*> blocks_{nullptr};  // set once, by the first keep() or is_expected()
};

/// A range of a file on its way into a row. Plain data in the row's arena.
struct KeptRange {
  const std::byte* bytes = nullptr;  // of the range, once it is not `reading`
  bool reading = false;              // its reads are planned, and end before the next round

  /// Looks for the range in `kept` (which may be null) and else plans its reading, into the row's arena. Throws
  /// Corruption if it is not inside the file.
  void begin(Row& row, const File& file, KeptBlocks* kept, std::uint64_t offset, std::uint64_t size, Reads& out);
  /// In the round after one in which it was `reading`.
  void end() noexcept;
  /// Keeps what was read, if anything was: after its check, since what is kept is not read again.
  void keep() noexcept;

 private:
  static constexpr std::uint64_t kBlock = KeptBlocks::kBlock;

  void reserve(Row& row, const File& file, std::uint64_t offset, std::uint64_t bytes);
  void read(const File& file, std::uint64_t offset, std::uint64_t size, std::byte* to, Reads& out);

  KeptBlocks* kept_ = nullptr;
  bool fresh_ = false;         // read, not kept
  std::byte* room_ = nullptr;  // reused by the next begin()
  std::uint64_t room_bytes_ = 0;
  std::byte* read_to_ = nullptr;
  std::uint64_t read_offset_ = 0;
  std::uint64_t read_bytes_ = 0;
};

}  // namespace penstock::layout
