// FillInTheMiddle: rearranges the pieces of documents in a row's records, before any column is made of them.
//
// With a probability a piece of n records gives up its last three, and is cut at two uniform points into prefix, middle
// and suffix (Bavarian et al., "Efficient training of language models to fill in the middle", 2022, arXiv 2207.14255,
// section 3 and appendix D):
//
//   PSM  <PRE> prefix <SUF> suffix <MID> middle
//   SPM  <PRE> <SUF> suffix <MID> prefix middle          (their variant 2, also Megatron's)
//
// So every piece keeps its length and place, and with it the row its spans and padding. Records move whole; one that is
// a sentinel is the record that it stands before, but for its token. Immutable; any thread.
#pragma once

#include "core/columns/column_spec.h"
#include "core/columns/sequences.h"
#include "core/rows/field_place.h"
#include "core/rows/source.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace penstock {

struct FillInTheMiddleSpec {
  std::string field;  // of the tokens
  std::int64_t prefix = 0;
  std::int64_t middle = 0;
  std::int64_t suffix = 0;
  double rate = 0;                               // of pieces that are rearranged …
  double spm_rate = 0;                           // … and of those, as SPM
  DocumentBounds bounds = {};                    // of documents; rows of documents are one each
  std::optional<std::int64_t> first_stays = {};  // a token that stays where it is as a piece's first …
  std::optional<std::int64_t> last_stays = {};   // … or as its last
  std::uint64_t seed = 0;                        // with the epoch and the observation decides what is drawn
};

class FillInTheMiddle {
 public:
  /// Throws InvalidArgument: a rate outside of [0, 1], a field that is not there or no single integer a record, tokens
  /// that it cannot hold, sentinels that are not three; fields that lie apart; as Sequences.
  FillInTheMiddle(FillInTheMiddleSpec spec, const SourceInfo& source);

  /// The parts of each row that it needs; always all of its records.
  [[nodiscard]] Parts parts() const noexcept;
  /// Changes the records of a row that has them and its spans.
  void rearrange(Row& row) const;

 private:
  template <typename Visit>
  void each_piece(const Row& row, const Visit& visit) const;
  void permute(std::byte* piece, std::uint64_t records, std::uint64_t begin, std::uint64_t end, bool is_spm) const;
  [[nodiscard]] bool has_token(const Row& row, std::uint64_t record, const std::optional<std::int64_t>& token) const;

  const FillInTheMiddleSpec spec_;
  const FieldPlace place_;
  const bool packed_;
  std::optional<Sequences> documents_;  // none: rows are documents, or packed
};

}  // namespace penstock
