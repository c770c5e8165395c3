// ExactPacker: rows that are filled to the last record, each from the begin of a document on (Fill::Exact). Lengths in,
// rows out: no files, no threads.
//
// Fit::Next takes documents in their order; the one that reaches beyond the row is cut there, and its rest is in no
// row. Fit::Best looks at `buffer` documents at least, into which `refill` come together: the longest that the row has
// room for comes next, of equal ones the first; where none fits, the shortest is cut, and its rest is in no row. At a
// shard's end what the buffer still has is used; a row that it does not fill is none. max_document cuts documents
// before, into pieces that are then as documents. With max_documents, the row's last place is for the next document
// (Fit::Next), or the shortest of the buffer, that fills it. One thread at a time.
#pragma once

#include "layout/packed/packing.h"
#include "layout/packed/rooms.h"

#include <cstddef>
#include <cstdint>
#include <queue>
#include <span>
#include <utility>
#include <vector>

namespace penstock::layout {

class ExactPacker {
 public:
  /// Takes a rule of Fill::Exact. Throws as check_packing_rule().
  explicit ExactPacker(const PackingRule& rule);

  /// Takes documents first_document, first_document + 1, … of these lengths, which follow those before in a shard;
  /// appends the rows that are filled. Throws InvalidArgument: as Packer::add(); a row that max_documents do not fill.
  void add(std::uint64_t first_document, std::span<const std::uint64_t> lengths, PackedRows& out);
  /// After a shard's last document: appends what rows are left.
  void end_shard(PackedRows& out);

 private:
  struct Waiting {
    PackedPiece piece;
    std::uint64_t length = 0;
    std::uint64_t parts = 1;  // of its document
  };
  /// Those of the buffer, by length: a queue for each length that a row has room for, and the others.
  class Buffer {
   public:
    explicit Buffer(std::uint64_t window);
    void push(const Waiting& waiting);
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    /// Records of the longest that a row has room for; there is one.
    [[nodiscard]] std::uint64_t longest() const noexcept;
    /// Takes the longest of at most, and the shortest of at least, so many records; false: there is none.
    bool pop_longest(std::uint64_t to, Waiting& out);
    bool pop_shortest(std::uint64_t from, Waiting& out);

   private:
    void pop(std::uint64_t length, Waiting& out);

    const std::uint64_t window_;
    std::uint64_t size_ = 0;
    std::uint64_t pushed_ = 0;
    Rooms lengths_;
    std::vector<std::uint32_t> last_of_length_;  // each one's `next` is the next to come, the last one's the first
    std::vector<Waiting> waiting_;
    std::vector<std::uint32_t> next_;
    std::vector<std::uint32_t> free_;
    struct Long {
      std::uint64_t number;  // in order of arrival
      Waiting waiting;
      bool operator<(const Long& other) const noexcept {  // the shortest, then the first, is the queue's top
        return std::pair(waiting.length, number) > std::pair(other.waiting.length, other.number);
      }
    };
    std::priority_queue<Long> long_;
  };

  void take(const Waiting& waiting, PackedRows& out);
  void put(const Waiting& waiting, PackedRows& out);
  bool put_best(PackedRows& out);
  void leave_row();
  [[nodiscard]] bool has_one_place() const noexcept;
  [[noreturn]] void raise_too_few() const;

  const PackingRule rule_;
  std::uint64_t room_;         // of the row that is begun
  std::vector<Waiting> row_;   // its pieces
  std::vector<Waiting> left_;  // pieces of the shard that are in no row
  Buffer buffer_;
  std::uint64_t came_ = 0;  // into the buffer since it was filled
};

}  // namespace penstock::layout
