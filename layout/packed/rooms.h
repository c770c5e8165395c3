// Rooms: which sizes there are, for the questions which is the least of at least, and the most of at most, a size.
//
// A tree of bits, 64 to a node. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock::layout {

class Rooms {
 public:
  static constexpr std::uint64_t kNone = UINT64_MAX;

  /// Takes sizes up to `most`.
  explicit Rooms(std::uint64_t most);
  void set(std::uint64_t room) noexcept;
  void clear(std::uint64_t room) noexcept;
  /// The least one >= `from`, or kNone.
  [[nodiscard]] std::uint64_t least(std::uint64_t from) const noexcept;
  /// The most one <= `to`, which is one that may be, or kNone.
  [[nodiscard]] std::uint64_t most(std::uint64_t to) const noexcept;

 private:
  std::vector<std::vector<std::uint64_t>> levels_;  // the bits, then for each of their words whether it is not 0, …
};

}  // namespace penstock::layout
