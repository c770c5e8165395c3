// Mixture: the order over several sources that a MixturePlan describes; each source has an order and epochs of its own.
//
// Unit n of a source, counted over the run, is what stands at position n of that source's order, in whatever stage it
// comes. Where windows change, a source of the plan has a number for each window: windows' number * sources + source,
// so that the rows of a batch are of one shape; the observation of part i of a unit that is m parts is unit * m + i.
// A steered one takes weights that are set while it runs: another order, which shares what lies before them.
// Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "core/job/steering.h"
#include "shuffle/mixture_plan.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::shuffle {

class Mixture final : public Order {
 public:
  /// `orders` of the plan's sources, by their numbers; `seed` is what they were made of. `is_steered`: whether weights
  /// may be set while it runs.
  Mixture(std::shared_ptr<const MixturePlan> plan, std::vector<std::shared_ptr<const Order>> orders, std::uint64_t seed,
          bool is_steered = false);

  /// The seed of a source's order: keyed by its name, so that sources can be added.
  static std::uint64_t source_seed(std::uint64_t seed, const std::string& name);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint32_t source_at(std::uint64_t position) const override;
  /// The run's length; 2^63 for an endless one.
  [[nodiscard]] std::uint64_t epoch_size() const override;
  [[nodiscard]] std::uint64_t end(std::uint64_t position) const override { return plan_->window_end(position); }
  /// Where the fetches of all sources that are open have ended, but no more positions ahead than they have rows
  /// together: a source of little weight has its fetches read in parts. Where units have parts, at the end of a group:
  /// parts of all its fetches are open.
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override;
  [[nodiscard]] std::string identity(std::uint64_t position) const override;
  [[nodiscard]] OrderDifference difference_to(std::string_view saved, std::uint64_t position) const override;
  [[nodiscard]] bool may_wait() const override;
  [[nodiscard]] std::string place(std::uint64_t position) const override;
  [[nodiscard]] std::shared_ptr<const Steering> steering() const override { return steering_; }
  [[nodiscard]] std::shared_ptr<const Order> steered(const std::shared_ptr<const Steering>& steering) const override;
  [[nodiscard]] std::uint64_t change_begin(std::uint64_t position) const override {
    return plan_->courses().begin_of_change(position);
  }

  [[nodiscard]] const std::shared_ptr<const MixturePlan>& plan() const noexcept { return plan_; }

 private:
  void pick_one(std::uint64_t position, Pick& out) const;
  void pick_slots(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const;
  void pick_source(std::uint32_t source, std::span<const MixtureSlot> slots, std::span<std::uint16_t> numbers,
                   std::span<Pick> out) const;
  [[nodiscard]] Pick part_of(const Pick& unit, const MixtureSlot& slot) const;
  [[nodiscard]] std::string identity_of_list(std::uint64_t position) const;
  [[nodiscard]] SourceKeys sources_set_before(std::uint64_t position) const;
  void compare_caps(std::string_view saved, std::uint64_t position, OrderDifference& out) const;

  std::shared_ptr<const MixturePlan> plan_;
  std::vector<std::shared_ptr<const Order>> orders_;
  std::uint64_t seed_;
  std::shared_ptr<const Steering> steering_;  // null: it is not steered
  bool has_fetches_;                          // of more than one row
};

}  // namespace penstock::shuffle
