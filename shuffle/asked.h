// Asked: the order of a user's own, as a function that is asked for blocks of positions.
//
// The function is pure: what it answers for an epoch and a position is always the same, in whichever process. That
// nobody can check, so its name and version stand for it in the identity. Indices may come more than once, or never.
// Immutable, but for what `ask` keeps: any thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/lane_fetches.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::shuffle {

using IndexBlock = std::shared_ptr<const std::vector<std::uint64_t>>;

class Asked final : public Order {
 public:
  /// Positions of a block.
  static constexpr std::uint64_t kBlock = 65'536;
  /// Positions of block `number` of an epoch of `length`: kBlock, or as many as the epoch has left.
  static constexpr std::uint64_t positions_in(std::uint64_t length, std::uint64_t number) noexcept {
    return length - number * kBlock < kBlock ? length - number * kBlock : kBlock;
  }

  /// The indices at the positions of block `number` of an epoch, from number * kBlock on: all below what the view has.
  /// Any thread; may wait, and throws what the answer is not to be had for.
  using Ask = std::function<IndexBlock(std::uint32_t epoch, std::uint64_t number)>;

  struct Spec {
    std::string name = {};
    std::string version = {};
    std::uint64_t length = 0;  // of an epoch
    std::uint64_t fetch = 1;   // positions of each lane that are read together
    std::uint64_t lanes = 1;
    bool waits = false;                                       // `ask` does
    std::function<void(std::uint64_t epochs)> note_end = {};  // how many a job has at most
  };

  /// Throws InvalidArgument for a length that no order has, or a fetch or lanes of 0.
  Asked(Spec spec, Ask ask);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return spec_.length; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return fetches_.end(position); }
  [[nodiscard]] std::string identity(std::uint64_t position) const override;
  [[nodiscard]] bool may_wait() const override { return spec_.waits; }
  void note_end(std::uint64_t position) const override;

 private:
  Spec spec_;
  Ask ask_;
  LaneFetches fetches_;
};

}  // namespace penstock::shuffle
