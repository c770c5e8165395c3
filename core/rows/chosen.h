// Chosen: some of n observations, a bit each, and which one the i-th of them is.
//
// 10^8 observations take 15 MB however many are chosen; a list of a tenth of them takes 80. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

class Source;

/// Bit i of `words`, from the lowest of the first one on.
[[nodiscard]] inline bool bit_at(const std::vector<std::uint64_t>& words, std::uint64_t i) noexcept {
  return (words[i / 64] >> (i % 64) & 1) != 0;
}
/// Words that `bits` take.
[[nodiscard]] constexpr std::uint64_t words_for(std::uint64_t bits) noexcept {
  return bits / 64 + (bits % 64 == 0 ? 0 : 1);
}

class Chosen {
 public:
  /// Observation i of `size` is chosen where its bit is set. Throws InvalidArgument unless there is a word for each 64
  /// of them, and no bit beyond.
  Chosen(std::vector<std::uint64_t> words, std::uint64_t size);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t count() const noexcept { return starts_.back(); }
  [[nodiscard]] const std::vector<std::uint64_t>& words() const noexcept { return words_; }
  [[nodiscard]] bool has(std::uint64_t observation) const noexcept { return bit_at(words_, observation); }
  /// The i-th of those that are chosen, i below count(). Constant time on average.
  [[nodiscard]] std::uint64_t at(std::uint64_t i) const noexcept;
  /// How many of the first `observations` are chosen; at most size().
  [[nodiscard]] std::uint64_t before(std::uint64_t observations) const noexcept;
  /// 32 hex digits over size and bits.
  [[nodiscard]] std::string digest() const;

 private:
  std::vector<std::uint64_t> words_;
  std::uint64_t size_;
  std::vector<std::uint64_t> starts_;  // how many are chosen before each block of words; at the end all
  std::vector<std::uint64_t> hints_;   // the block of every kHint-th one that is chosen; at the end the last block
};

/// Those of `part`, a view or a part of it, that are chosen of its whole view. Throws InvalidArgument where the whole
/// view has not as many observations as `whole` is of.
Chosen chosen_of_part(const Source& part, const Chosen& whole);

}  // namespace penstock
