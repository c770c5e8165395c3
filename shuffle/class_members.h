// ClassMembers: which observations belong to each class: class by class, as they stand in the dataset.
//
// Immutable; any thread. 4 bytes an observation, 8 from 2^32 observations on, and 8 a class.
#pragma once

#include "core/base/digest.h"

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace penstock::shuffle {

class ClassMembers {
 public:
  /// labels[i] is the class of observation i, below `classes`; a negative one is in none. Classes without members are
  /// left out: those that remain are numbered 0, 1, … in the order of their labels. Throws InvalidArgument for a label
  /// that is too large, and if no class has a member.
  ClassMembers(std::span<const std::int32_t> labels, std::uint32_t classes);

  [[nodiscard]] std::uint64_t classes() const noexcept { return starts_.size() - 1; }
  [[nodiscard]] std::uint64_t count(std::uint64_t number) const noexcept {
    return starts_[number + 1] - starts_[number];
  }
  /// Member `i` < count(number) of a class.
  [[nodiscard]] std::uint64_t member(std::uint64_t number, std::uint64_t i) const noexcept {
    const std::uint64_t at = starts_[number] + i;
    const auto* narrow = std::get_if<std::vector<std::uint32_t>>(&members_);
    return narrow != nullptr ? (*narrow)[at] : std::get<std::vector<std::uint64_t>>(members_)[at];
  }
  [[nodiscard]] DigestBytes digest() const;

 private:
  std::vector<std::uint64_t> starts_;  // of each class in members_, and their number
  std::variant<std::vector<std::uint32_t>, std::vector<std::uint64_t>> members_;
};

}  // namespace penstock::shuffle
