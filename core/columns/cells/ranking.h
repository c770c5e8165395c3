// Ranking: which keys are the largest, in order; a stable radix sort by their leading bits, put right by all of them.
//
// Keeps its memory from one call to the next. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::cells {

class Ranking {
 public:
  /// Numbers of the `most` largest of `keys` (all of them if there are fewer), largest first, equal keys in their
  /// order. Keys are from 0 on and not NaN. Valid until the next call.
  std::span<const std::uint32_t> largest(std::span<const double> keys, std::uint64_t most);

 private:
  static constexpr unsigned kDigitBits = 11;
  using Counts = std::array<std::uint32_t, std::size_t{1} << kDigitBits>;

  /// A key's leading bits, so that the largest key has the least of them, and its number.
  struct Item {
    std::uint32_t lead;
    std::uint32_t number;
  };

  void pack(std::span<const double> keys, unsigned shift, std::uint64_t top);
  void drop_beyond(std::uint64_t most);
  void pass(unsigned shift, const Counts& counts);
  void put_right(std::span<const double> keys);

  std::vector<Item> items_;
  std::vector<Item> other_;
  std::vector<std::uint32_t> numbers_;
  std::uint64_t count_ = 0;  // of items in use
  Counts low_{};
  Counts high_{};
};

}  // namespace penstock::cells
