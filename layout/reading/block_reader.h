// BlockReader: a file of a shard read from front to back, compared with its check values, for readers of much of it
// at once: a column's values, the lengths of all documents.
//
// One thread at a time; waits for its reads.
#pragma once

#include "core/io/byte_store.h"
#include "core/io/file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace penstock::layout {

class BlockReader {
 public:
  /// `file` is read through `through`. `side` has its check values; one of no store: nothing is compared.
  BlockReader(const File& file, File side, const StoreChoice& through);

  /// Bytes [offset, offset + size) of the file, valid until the next call. Whole blocks of 4 KiB are read. Throws
  /// NotFound, IoError, Corruption (beyond the file; another check value), and what the store throws while it is waited
  /// for.
  std::span<const std::byte> read(std::uint64_t offset, std::uint64_t size);

 private:
  const File& file_;
  const File side_;
  ByteStore& store_;
  std::unique_ptr<Channel> channel_;
  std::vector<std::byte> blocks_;
  std::vector<std::uint32_t> checks_;
};

}  // namespace penstock::layout
