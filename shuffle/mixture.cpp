#include "shuffle/mixture.h"

#include "core/base/error.h"
#include "core/job/position.h"
#include "shuffle/permutation.h"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace penstock::shuffle {
namespace {

// Keeps the sources' seeds apart from all other keys of a seed. Part of algorithm 1.
constexpr std::uint64_t kMixtureSource = 0x6d6978736f757263;

// Up to kKernelBlock, and no more are touched than there are.
template <typename T>
using Few = boost::container::small_vector<T, kKernelBlock>;

}  // namespace

Mixture::Mixture(std::shared_ptr<const MixturePlan> plan, std::vector<std::shared_ptr<const Order>> orders,
                 std::uint64_t seed, bool is_steered)
    : plan_(std::move(plan)),
      orders_(std::move(orders)),
      seed_(seed),
      steering_(is_steered ? std::make_shared<const Steering>(plan_->spec().names) : nullptr),
      has_fetches_(std::any_of(orders_.begin(), orders_.end(), [](const auto& o) { return o->fetch_end(0) > 1; })) {
  if (orders_.size() != plan_->spec().names.size()) {
    raise(ErrorKind::InvalidArgument, "a mixture of {} sources and {} orders", plan_->spec().names.size(),
          orders_.size());
  }
}

std::uint64_t Mixture::source_seed(std::uint64_t seed, const std::string& name) {
  Key key = Key().absorb(kMixtureSource).absorb(seed).absorb(name.size());
  for (const char c : name) key = key.absorb(static_cast<unsigned char>(c));
  return key.state();
}

void Mixture::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  for (std::size_t done = 0; done < out.size(); done += kKernelBlock) {
    const std::size_t count = std::min(kKernelBlock, out.size() - done);
    if (count == 1) {
      pick_one(first + done * stride, out[done]);
    } else {
      pick_slots(first + done * stride, stride, out.subspan(done, count));
    }
  }
}

void Mixture::pick_one(std::uint64_t position, Pick& out) const {
  MixtureSlot slot;
  plan_->find(position, 1, {&slot, 1});
  Pick unit;
  orders_[slot.source]->pick_at({&slot.ordinal, 1}, {&unit, 1});
  out = part_of(unit, slot);
}

std::uint32_t Mixture::source_at(std::uint64_t position) const {
  MixtureSlot slot;
  plan_->find(position, 1, {&slot, 1});
  return part_of({}, slot).source;
}

Pick Mixture::part_of(const Pick& unit, const MixtureSlot& slot) const {
  Pick pick = unit;
  pick.index = unit.index * slot.parts + slot.part;
  pick.source = slot.source + slot.window_number * static_cast<std::uint32_t>(orders_.size());
  return pick;
}

// Slots first, then each source's order for all of its own at once: at most kKernelBlock.
void Mixture::pick_slots(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  Few<MixtureSlot> slots(out.size());
  plan_->find(first, stride, {slots.data(), slots.size()});
  Few<std::uint16_t> begins(orders_.size() + 1);  // of each source's slots in by_source
  for (const MixtureSlot& slot : slots) ++begins[slot.source + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::array<std::uint16_t, kKernelBlock> by_source;  // numbers of slots, sources together
  for (std::size_t i = 0; i < slots.size(); ++i) by_source[begins[slots[i].source]++] = static_cast<std::uint16_t>(i);
  for (std::size_t at = 0; at < slots.size();) {
    const std::uint32_t source = slots[by_source[at]].source;
    const std::size_t end = begins[source];
    pick_source(source, {slots.data(), slots.size()}, std::span(by_source).subspan(at, end - at), out);
    at = end;
  }
}

// Orders take ordinals that rise: where units have parts these come in any order, and some more than once.
void Mixture::pick_source(std::uint32_t source, std::span<const MixtureSlot> slots, std::span<std::uint16_t> numbers,
                          std::span<Pick> out) const {
  const auto lies_before = [&](std::uint16_t a, std::uint16_t b) { return slots[a].ordinal < slots[b].ordinal; };
  if (!std::is_sorted(numbers.begin(), numbers.end(), lies_before)) {
    std::sort(numbers.begin(), numbers.end(), lies_before);
  }
  std::array<std::uint64_t, kKernelBlock> ordinals;
  std::size_t count = 0;
  for (const std::uint16_t number : numbers) {
    const std::uint64_t ordinal = slots[number].ordinal;
    if (count == 0 || ordinals[count - 1] != ordinal) ordinals[count++] = ordinal;
  }
  Few<Pick> units(count);
  orders_[source]->pick_at(std::span(ordinals).first(count), {units.data(), count});
  std::size_t at = 0;
  for (const std::uint16_t number : numbers) {
    at += ordinals[at] == slots[number].ordinal ? 0 : 1;
    out[number] = part_of(units[at], slots[number]);
  }
}

std::uint64_t Mixture::epoch_size() const {
  return std::min(plan_->end(), kMostPosition);
}

std::uint64_t Mixture::fetch_end(std::uint64_t position) const {
  if (!has_fetches_ || position + 1 >= plan_->end()) return position + 1;
  std::vector<std::uint64_t> given(orders_.size());  // units, which are what orders count
  plan_->count_begun(position, given);
  std::uint64_t end = plan_->group_end(position);
  Wide units = 0;
  for (const std::uint32_t source : plan_->sources_at(position)) {
    if (given[source] == 0) continue;
    const std::uint64_t next = orders_[source]->fetch_end(given[source] - 1);  // the first of another fetch
    if (next <= given[source]) continue;
    units += orders_[source]->fetch_end(next) - next;
    end = std::max(end, plan_->unit_end(position, source, next - 1));
  }
  const Wide last = position + std::max<Wide>(units * plan_->parts_at(position), 1) - 1;
  if (last < end - 1) end = plan_->group_end(static_cast<std::uint64_t>(last));
  return std::min(end, plan_->end());
}

bool Mixture::may_wait() const {
  return std::any_of(orders_.begin(), orders_.end(), [](const auto& order) { return order->may_wait(); });
}

std::shared_ptr<const Order> Mixture::steered(const std::shared_ptr<const Steering>& steering) const {
  if (!steering_) return Order::steered(steering);
  auto changed = std::make_shared<Mixture>(*this);
  changed->plan_ = plan_->with(steering);
  changed->steering_ = steering;
  return changed;
}

}  // namespace penstock::shuffle
