// Permutation: the bijection of [0, N) that (seed, epoch) chooses, in constant time and memory, and its inverse.
//
// Algorithm 1: an 8-round generalized Feistel network with the hash fmixk (feistel.h, round.h); for N <= 64 a
// Fisher-Yates table from the same key. Integers decide every result: it depends on no platform, compiler, instruction
// set or batch size. tests/golden/permutation.json freezes it; a change is a new algorithm number.
// A value, immutable: any thread.
#pragma once

#include "shuffle/dispatch.h"
#include "shuffle/feistel.h"

#include <array>
#include <cstdint>
#include <span>

namespace penstock::shuffle {

/// The number of the algorithm that turns (size, seed, epoch, index) into an image; part of every order's identity.
inline constexpr std::uint64_t kAlgorithm = 1;
inline constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 52;
/// Up to this size a table is used: few-bit Feistel networks show in the statistics of many keys (Patarin 2001).
inline constexpr std::uint64_t kTableSize = 64;

class Permutation {
 public:
  /// Throws InvalidArgument if `size` is 0 or above kMaxSize.
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch = 0);

  /// The image of index < size(). Throws InvalidArgument for others.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t index) const;

  /// The index whose image is `value` < size(). Throws InvalidArgument for others.
  [[nodiscard]] std::uint64_t inverse(std::uint64_t value) const;

  /// out[i] = (*this)(in[i]); `in` and `out` have one length and are the same memory or do not overlap. Throws
  /// InvalidArgument, before anything is written, for an index >= size() or two lengths. `form` is for tests and
  /// benchmarks: all give the same values.
  void operator()(std::span<const std::uint64_t> in, std::span<std::uint64_t> out, Form form = best_form()) const;

  /// out[i] = inverse(in[i]), under the same rules.
  void inverse(std::span<const std::uint64_t> in, std::span<std::uint64_t> out, Form form = best_form()) const;

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

 private:
  using Network = Feistel<kKernelRounds, Fmixk>;
  struct Table {
    std::array<std::uint8_t, kTableSize> forward{};
    std::array<std::uint8_t, kTableSize> inverse{};
  };

  [[nodiscard]] bool small() const noexcept { return size_ <= kTableSize; }
  void check(std::span<const std::uint64_t> in, std::span<std::uint64_t> out) const;
  void fill_table(Key key);
  [[nodiscard]] KernelInput kernel_input() const;
  /// out[i] = what `pass` makes of in[i], where it lies beyond the size led on by `walk`; of few elements table[in[i]].
  template <typename Walk>
  void map(std::span<const std::uint64_t> in, std::span<std::uint64_t> out, KernelPass pass,
           const std::array<std::uint8_t, kTableSize>& table, const Walk& walk) const;

  std::uint64_t size_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  Network network_;
  Table table_;
};

}  // namespace penstock::shuffle
