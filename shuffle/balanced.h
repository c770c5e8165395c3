// Balanced: each of C classes once in every C positions, and the members of each class once in epochs of their own.
//
// Positions are cut into rounds of C, in each of which the classes stand in an order of the round's own. In round g a
// class of n members gives member g mod n of its epoch g div n, which is a permutation of its members. A round is cut
// by no epoch: an epoch is `size` positions of this one sequence. `fetch` consecutive positions of a lane are read
// together. Other shares of classes are an order Weighted. Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/class_members.h"
#include "shuffle/key.h"
#include "shuffle/permutation.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace penstock::shuffle {

class Balanced final : public Order {
 public:
  /// Throws InvalidArgument for a size of 0 or above 2^52, or a fetch or lanes of 0.
  Balanced(ClassMembers members, std::uint64_t seed, std::uint64_t size, std::uint64_t fetch, std::uint64_t lanes);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return size_; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override;
  [[nodiscard]] std::string identity(std::uint64_t position) const override;

 private:
  [[nodiscard]] std::uint64_t index_at(std::uint64_t position, std::optional<Permutation>& classes) const;

  ClassMembers members_;
  std::uint64_t seed_;
  Key key_;
  std::uint64_t size_;
  std::uint64_t fetch_;
  std::uint64_t lanes_;
  std::string digest_;
};

}  // namespace penstock::shuffle
