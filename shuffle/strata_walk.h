// StrataWalk: the slots of jittered Strata one after the other, from any position on. Made and dropped inside one call;
// one thread.
//
// Times are compared relative to x = X / W for an integer X a little before the position: that of slot k is
// D / (w W 2^32) later, with D = ((k - floor(w x)) 2^32 + u) W - (w X mod W) 2^32, which 128 bits hold. What is
// compared is floor(D / w), then the remainders, then the members: an exact order. floor(D / w) is in 2^-32 of a
// position; one beyond 64 bits, of a slot that no walk from these edges comes to, is cut to the last number.
#pragma once

#include "shuffle/strata_members.h"

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::shuffle {

class StrataWalk {
 public:
  explicit StrataWalk(const StrataMembers& strata);

  /// Goes to `position`: below 2^64.
  void seek(std::uint64_t position);
  /// Goes on to a position that is not before the present one, by as many steps or by seek().
  void advance(std::uint64_t position);
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// The slot at the position.
  [[nodiscard]] Slot slot() const noexcept { return {next_.front().number, next_.front().member}; }
  /// out[s] = the slots of member s before the position.
  void count(std::span<std::uint64_t> out) const;

 private:
  /// Where a member stands at time x.
  struct Edge {
    std::uint64_t whole = 0;  // floor(w x)
    std::uint64_t rest = 0;   // w X mod W
  };
  /// A member's next slot.
  struct Next {
    std::uint64_t time = 0;  // floor(D / w)
    std::uint64_t rest = 0;  // D mod w
    std::uint64_t number = 0;
    std::uint32_t member = 0;
  };

  [[nodiscard]] std::uint64_t set_edges(std::uint64_t x);
  [[nodiscard]] Edge edge(std::size_t member, std::uint64_t x) const;
  void set_time(Next& next) const;
  [[nodiscard]] bool is_before(const Next& a, const Next& b) const;
  void sink(std::size_t at);
  void step();

  const StrataMembers& strata_;
  const std::uint64_t lead_;  // how far X is before the position, if that is enough
  std::uint64_t position_ = 0;
  std::uint64_t sought_ = 0;  // the position that the edges are near
  bool has_edges_ = false;
  std::uint64_t at_ = 0;        // X of the edges …
  std::uint64_t distance_ = 0;  // … and how far that was from the one before it: positions are often equally far apart
  boost::container::small_vector<Edge, 24> edges_;
  boost::container::small_vector<Edge, 24> steps_;  // the same of `distance_`; none before there was one
  boost::container::small_vector<Next, 24> next_;   // a heap: its front is the earliest
};

}  // namespace penstock::shuffle
