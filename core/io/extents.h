// Extents: which reads go together. Reads of a fetch are sorted by place; what lies near becomes one request.
//
// A request is a run of pieces that follow one another in a file without a gap; a channel reads such a run with one
// call. A piece goes where the read that needs it wants its bytes; what lies between two reads goes to a place that
// is not read; bytes that several reads need are read once and copied to the others. Pure but for complete(); one
// thread.
#pragma once

#include "core/io/read.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// What a store says of its ranges.
struct ExtentRules {
  std::uint64_t near_bytes = 0;         // ranges that lie no further apart are read as one
  std::uint64_t block_bytes = 1;        // it reads whole blocks of this size, so distances are between those
  std::uint64_t most_bytes = 1U << 20;  // a request has no more, but for a single read that is larger
  std::uint64_t most_unwanted = 100;    // percent of a request that no read wants
};

class Extents {
 public:
  /// Plans `reads`, which stay where they are until complete(); their order changes. Those of no bytes need no piece.
  /// Throws std::bad_alloc.
  void plan(std::span<Read*> reads, const ExtentRules& rules);

  /// What is to be submitted, in this order: pieces, run after run. Each has `owner` and `cancelled` of a read that
  /// needs it. Valid until the next plan().
  [[nodiscard]] std::span<Read> pieces() noexcept { return pieces_; }
  /// How many requests the pieces make.
  [[nodiscard]] std::size_t requests() const noexcept { return requests_; }

  /// After all pieces have ended: copies what several reads need, and gives each read the outcome of its pieces.
  void complete();

 private:
  struct Placed {  // bytes [begin, end) of the request's file are read to `to` by piece number `piece`
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::byte* to = nullptr;
    std::size_t piece = 0;
  };
  struct Copy {  // the first `bytes` of `read` lie in places up to number `last`
    Read* read = nullptr;
    std::uint64_t bytes = 0;
    std::size_t first = 0;  // of the request's places
    std::size_t last = 0;
  };

  void add_piece(const Read& read, std::uint64_t begin, std::uint64_t end, std::byte* to, bool joined);
  void finish(const Copy& copy);

  std::vector<Read> pieces_;
  std::vector<Placed> places_;  // of pieces that some read needs, request after request
  std::vector<Copy> copies_;
  std::vector<std::pair<std::size_t, Read*>> owners_;  // piece -> the read whose bytes it brings
  std::vector<std::byte> unwanted_;
  std::size_t requests_ = 0;
};

}  // namespace penstock
