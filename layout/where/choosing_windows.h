// ChoosingWindows: which windows of a stream lie in chosen documents: all records of such a window, its lookahead
// included, are of documents that are chosen.
//
// Only those parts of the index are read in which a document is chosen. Documents without records are in no window and
// between none. One thread at a time; waits for reads.
#pragma once

#include "core/io/byte_store.h"
#include "core/rows/chosen.h"
#include "layout/dataset.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace penstock::layout {

class ChoosingWindows {
 public:
  /// Windows are those that make_windows() makes. Throws InvalidArgument: documents without records, a choice among
  /// other documents than the dataset has.
  ChoosingWindows(DatasetPtr dataset, std::shared_ptr<const Chosen> documents, std::uint64_t window,
                  std::uint64_t lookahead, StoreChoice through);

  /// Looks at about so many more documents; false once all were looked at. Throws NotFound, IoError, Corruption.
  bool step(std::uint64_t documents);
  /// After the last step, once.
  Chosen chosen();

 private:
  void look(std::uint64_t shard, std::uint64_t first, std::uint64_t stop);
  void add(std::uint64_t begin, std::uint64_t end);
  void finish_run();

  const DatasetPtr dataset_;
  const std::shared_ptr<const Chosen> documents_;
  const std::uint64_t window_;
  const std::uint64_t lookahead_;
  const StoreChoice through_;
  std::uint64_t windows_;
  std::uint64_t next_ = 0;   // document
  std::uint64_t begin_ = 0;  // of the records of chosen documents that follow one another …
  std::uint64_t end_ = 0;    // … so far
  std::vector<std::uint64_t> starts_;
  std::vector<std::uint64_t> words_;
};

}  // namespace penstock::layout
