// Choosing: the documents of a dataset that a condition on their columns chooses.
//
// Some are looked at at a time, by several threads if there are: so a caller can stop, and this room has no threads.
// Only the condition's columns are read, in pieces, and none for a piece in which what was looked at already decides.
// It keeps a bit for each document.
#pragma once

#include "core/io/byte_store.h"
#include "core/rows/chosen.h"
#include "layout/dataset.h"
#include "layout/where/bound_condition.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::layout {

class Choosing {
 public:
  /// `through` is the way to read. Throws InvalidArgument: what is no condition, or none on this dataset's columns; a
  /// dataset without columns, or in the ids layout.
  Choosing(DatasetPtr dataset, std::string_view condition, StoreChoice through);

  /// The dataset's.
  [[nodiscard]] std::uint64_t documents() const noexcept;
  /// The condition as it was parsed, see condition_text().
  [[nodiscard]] const std::string& condition() const noexcept { return text_; }

  /// (column, text) of each text that a category is compared with by =, <> or in.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> texts() const;

  /// Looks at documents [first, first + count), each once; `first` is a multiple of 64, and so is `count` but for the
  /// last ones. Several threads may at once, at other documents. Throws NotFound, IoError, Corruption; InvalidArgument
  /// for documents that are not there.
  void look(std::uint64_t first, std::uint64_t count);
  /// After all were looked at, once.
  Chosen chosen();

 private:
  class Piece;

  const DatasetPtr dataset_;
  const StoreChoice through_;
  std::string text_;
  BoundCondition condition_;
  std::vector<std::uint64_t> words_;
};

/// A choice as views describe it, as JSON: its condition, and number and digest of the documents.
std::string choice_json(const std::string& condition, const Chosen& chosen);

}  // namespace penstock::layout
