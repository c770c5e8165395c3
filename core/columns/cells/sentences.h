// Sentences: rows of tokens of one length, what cells that are ranked or binned become; and the cell's genes that have
// a token.
//
// Immutable; any thread.
#pragma once

#include "core/columns/cells/forms.h"
#include "core/columns/column.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace penstock::cells {

using SentenceSpecPtr = std::shared_ptr<const SentenceSpec>;

class Sentences {
 public:
  explicit Sentences(SentenceSpecPtr spec) : spec_(std::move(spec)) {}

  [[nodiscard]] const SentenceSpec& spec() const noexcept { return *spec_; }
  /// -1: none.
  [[nodiscard]] std::int64_t token(std::uint32_t gene) const noexcept {
    if (spec_->tokens.empty()) return std::int64_t{gene} + 4;
    return gene < spec_->tokens.size() ? spec_->tokens[gene] : -1;
  }
  /// Bytes of `arrays` int64 arrays [rows, length], each from a multiple of 8 bytes on. Throws InvalidArgument where no
  /// memory holds them.
  [[nodiscard]] std::uint64_t bytes(const BatchShape& batch, unsigned arrays) const;

  /// Where row `row` of an int64 array [rows, length] begins.
  [[nodiscard]] std::int64_t* row_of(std::byte* array, std::uint64_t row) const noexcept {
    return reinterpret_cast<std::int64_t*>(array) + row * spec_->length;
  }

  /// Writes a sentence of `count` genes' tokens, at most room(), and its mask. `token_at(i)` is the i-th.
  template <typename TokenAt>
  void write(std::uint64_t row, std::uint64_t count, const TokenAt& token_at, std::byte* ids, std::byte* mask) const {
    std::int64_t* const first = row_of(ids, row);
    std::int64_t* next = first;
    if (spec_->cls) *next++ = *spec_->cls;
    for (std::uint64_t i = 0; i < count; ++i) *next++ = token_at(i);
    if (spec_->eos) *next++ = *spec_->eos;
    std::fill(next, first + spec_->length, spec_->pad);
    const auto used = static_cast<std::uint64_t>(next - first);
    std::byte* const valid = mask + row * spec_->length;
    std::fill_n(valid, used, std::byte{1});
    std::fill(valid + used, valid + spec_->length, std::byte{0});
  }
  /// Rows [valid, rows): padding alone.
  void write_padding(const BatchShape& batch, std::byte* ids, std::byte* mask) const {
    std::fill(row_of(ids, batch.valid), row_of(ids, batch.rows), spec_->pad);
    std::fill(mask + batch.valid * spec_->length, mask + batch.rows * spec_->length, std::byte{0});
  }

 private:
  SentenceSpecPtr spec_;
};

}  // namespace penstock::cells
