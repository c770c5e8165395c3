// DocumentBounds: the documents of a foreign file, told by an array of a file that says where each begins or ends.
//
// Opening reads the whole array once, for the fingerprint and to check it, and keeps one value of each kBlock
// documents: finding those of a window then reads one bounded range. Immutable; any thread.
#pragma once

#include "layout/dataset/digest.h"
#include "layout/foreign/foreign_file.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::layout {

struct Shard;

/// An array of u32 or u64 in Shard::index: where the documents end, one value each, exclusive; if it `has_first`,
/// before them where document 0 begins.
struct BoundsArray {
  std::uint64_t offset = 0;  // of the first value
  unsigned width = 8;        // bytes of a value
  bool has_first = false;
  std::uint64_t base = 0;  // the value of token 0 …
  std::uint64_t unit = 1;  // … and what a token adds to it
};

class DocumentBounds {
 public:
  /// Documents from one sample to the next.
  static constexpr std::uint64_t kBlock = 512;

  /// Reads all of the array of `documents` documents of `index`, which must begin at token 0, follow one another and
  /// end at `tokens`, and adds it to `digest`. Throws Corruption.
  DocumentBounds(const ForeignFile& index, const BoundsArray& array, std::uint64_t documents, std::uint64_t tokens,
                 Digest& digest);

  [[nodiscard]] std::uint64_t documents() const noexcept { return documents_; }

  /// Documents [first, stop), whole blocks, that have all tokens from `from` up to `to`.
  struct Range {
    std::uint64_t first;
    std::uint64_t stop;
  };
  [[nodiscard]] Range around(std::uint64_t from, std::uint64_t to) const;

  /// Where the values lie that tell where documents `first` to `stop` begin, `stop` included; `has_zero`: there is none
  /// for document 0, which begins at token 0.
  struct Place {
    std::uint64_t offset;
    std::uint64_t bytes;
    bool has_zero;
  };
  [[nodiscard]] Place place(std::uint64_t first, std::uint64_t stop) const noexcept;

  /// Tokens at which documents `first` to `stop` begin, from the bytes of place(first, stop). `out` has stop - first
  /// + 1. Throws Corruption, which names the shard's index, if they are not in order within the shard: it changed.
  void starts(const Shard& shard, std::uint64_t first, const std::byte* bytes, std::span<std::uint64_t> out) const;

 private:
  [[nodiscard]] std::uint64_t value_at(const std::byte* bytes, std::uint64_t i) const noexcept;

  BoundsArray array_;
  std::uint64_t documents_;
  std::uint64_t tokens_;
  std::vector<std::uint64_t> samples_;  // the tokens before documents 0, kBlock, …; the last: all tokens
};

}  // namespace penstock::layout
