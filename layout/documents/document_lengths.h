// document_lengths: where documents begin and how many records they have, read from what says where they lie, for code
// that looks at all of them: packing, orders by length, windows in some documents.
//
// Reads chunks of the index one after the other. Any thread; waits.
#pragma once

#include "core/io/byte_store.h"
#include "layout/dataset.h"
#include "layout/reading/block_reader.h"

#include <cstdint>
#include <optional>
#include <span>

namespace penstock::layout {

/// Throws InvalidArgument, in words that say why, unless the dataset has documents of records.
void check_has_lengths(const Dataset& dataset);

/// Where the documents of one shard begin, from front to back. One thread at a time.
class DocumentStarts {
 public:
  /// Of a dataset that check_has_lengths() passed.
  DocumentStarts(const Dataset& dataset, const Shard& shard, const StoreChoice& through);

  /// out[i] = the record of the shard at which its document first + i begins; the last one is where the document before
  /// it ends. Throws NotFound, IoError, Corruption.
  void read(std::uint64_t first, std::span<std::uint64_t> out);

 private:
  const Dataset& dataset_;
  const Shard& shard_;
  std::optional<BlockReader> reader_;  // where a file says it
};

/// out[i] = records of document first + i of the dataset, which check_has_lengths() passed; `through` is the way to
/// read. Throws InvalidArgument (no such documents), NotFound, IoError, Corruption.
void read_document_lengths(const Dataset& dataset, std::uint64_t first, std::span<std::uint64_t> out,
                           const StoreChoice& through);

}  // namespace penstock::layout
