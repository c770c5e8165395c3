// StreamInput: records of an opened dataset from front to back, of token files that lie on this machine, as a writer
// stores them.
//
// Reads with descriptors of its own, which the kernel reads ahead of, into a buffer that stays in a core's cache. One
// thread at a time. Memory is two buffers of OutputFile::kPieceBytes.
#pragma once

#include "core/rows/schema.h"
#include "layout/dataset.h"
#include "writer/folder/system.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::writer {

class StreamInput {
 public:
  /// True if it can read `from` for a writer of `to`: local files, in each of which the records follow one another;
  /// one field of integers on both sides.
  static bool can_read(const layout::Dataset& from, const Schema& to);

  /// Records [begin, end) of `from`, which outlives this and can be read for `to`. Throws InvalidArgument.
  StreamInput(const layout::Dataset& from, const Schema& to, std::uint64_t begin, std::uint64_t end);

  /// The next `most` records or fewer, at least one unless all were given; valid until the next call. Throws NotFound,
  /// IoError, Corruption (a file is not as it was opened), InvalidArgument (a value that `to` does not hold).
  std::span<const std::byte> next(std::uint64_t most);

 private:
  void open_shard();

  const layout::Dataset& from_;
  const Leaf leaf_;
  const ScalarType type_;
  const bool same_bytes_;
  std::uint64_t at_;
  const std::uint64_t end_;
  std::uint64_t shard_ = 0;  // of `at_`, where a file is open
  Descriptor file_;
  std::vector<std::byte> read_;
  std::vector<std::byte> cast_;
};

}  // namespace penstock::writer
