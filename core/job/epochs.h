// Epochs: where epochs begin and end, also of a job whose epochs become longer at some position, as its dataset grew.
//
// A value; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace penstock {

/// (position, observations of an epoch from there on): the first at 0, others at the ends of epochs, rising.
using EpochSizes = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

class Epochs {
 public:
  /// Throws InvalidArgument: none, an epoch of nothing or beyond 2^63, one that begins within another, a first one that
  /// does not begin at 0.
  explicit Epochs(const EpochSizes& sizes);

  /// The number, from 0, of the epoch that the position lies in.
  [[nodiscard]] std::uint64_t number(std::uint64_t position) const noexcept {
    const Stretch& in = stretch(position);
    return in.first + (position - in.begin) / in.size;
  }
  /// Where that epoch begins.
  [[nodiscard]] std::uint64_t begin(std::uint64_t position) const noexcept {
    const Stretch& in = stretch(position);
    return position - (position - in.begin) % in.size;
  }
  /// Observations of that epoch.
  [[nodiscard]] std::uint64_t size(std::uint64_t position) const noexcept { return stretch(position).size; }
  /// The first position after `position` whose epoch may be of another size; kNoPosition: none.
  [[nodiscard]] std::uint64_t next_size(std::uint64_t position) const noexcept;
  /// Where epoch `number` begins; none beyond 2^63.
  [[nodiscard]] std::optional<std::uint64_t> begin_of(std::uint64_t number) const noexcept;

 private:
  struct Stretch {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::uint64_t first = 0;  // number of the epoch that begins there
  };
  [[nodiscard]] const Stretch& stretch(std::uint64_t position) const noexcept {
    return stretches_.size() == 1 ? stretches_.front() : *find(position);
  }
  [[nodiscard]] std::vector<Stretch>::const_iterator find(std::uint64_t position) const noexcept;

  std::vector<Stretch> stretches_;
};

}  // namespace penstock
