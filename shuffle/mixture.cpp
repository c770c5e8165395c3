#include "shuffle/mixture.h"

#include "core/base/error.h"
#include "core/job/cursor.h"
#include "shuffle/permutation.h"

#include <boost/container/small_vector.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cassert>
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
                 std::uint64_t seed)
    : plan_(std::move(plan)),
      orders_(std::move(orders)),
      seed_(seed),
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
    pick_slots(first + done * stride, stride, out.subspan(done, std::min(kKernelBlock, out.size() - done)));
  }
}

// Slots first, then each source's order for all of its own at once: at most kKernelBlock.
void Mixture::pick_slots(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  Few<MixtureSlot> slots(out.size());
  plan_->find(first, stride, {slots.data(), slots.size()});
  std::array<std::uint16_t, kKernelBlock> by_source;  // numbers of slots, sources together
  for (std::size_t i = 0; i < out.size(); ++i) by_source[i] = static_cast<std::uint16_t>(i);
  const auto last = by_source.begin() + static_cast<std::ptrdiff_t>(out.size());
  std::sort(by_source.begin(), last, [&](std::uint16_t a, std::uint16_t b) {
    return std::pair(slots[a].source, a) < std::pair(slots[b].source, b);
  });
  std::array<std::uint64_t, kKernelBlock> ordinals;
  Few<Pick> picks(out.size());
  for (auto at = by_source.begin(); at != last;) {
    const std::uint32_t source = slots[*at].source;
    std::size_t count = 0;
    for (auto each = at; each != last && slots[*each].source == source; ++each) {
      ordinals[count++] = slots[*each].ordinal;
    }
    orders_[source]->pick_at(std::span(ordinals).first(count), std::span(picks.data(), count));
    for (std::size_t i = 0; i < count; ++i, ++at) {
      const std::uint64_t position = first + *at * stride;
      Pick& pick = out[*at];
      pick = picks[i];
      pick.source = source;
      const std::uint64_t parts = plan_->parts_at(position);
      if (parts == 1) continue;
      pick.index = pick.index * parts + slots[*at].part;
      pick.source += plan_->window_number(position) * static_cast<std::uint32_t>(orders_.size());
    }
  }
}

std::uint64_t Mixture::epoch_size() const {
  return std::min(plan_->end(), kMostPosition);
}

std::uint64_t Mixture::fetch_end(std::uint64_t position) const {
  if (!has_fetches_ || position + 1 >= plan_->end()) return position + 1;
  const MixtureStage& stage = plan_->stages()[plan_->stage_at(position)];
  std::vector<std::uint64_t> given(orders_.size());
  plan_->count(position + 1, given);
  std::uint64_t end = position + 1;
  std::uint64_t rows = 0;
  for (const std::uint32_t source : stage.sources) {
    if (given[source] == 0) continue;
    const std::uint64_t next = orders_[source]->fetch_end(given[source] - 1);  // the first of another fetch
    if (next <= given[source]) continue;
    rows += orders_[source]->fetch_end(next) - next;
    end = std::max(end, plan_->position_near(position, source, next - 1) + 1);
  }
  return std::min({end, position + std::max<std::uint64_t>(rows, 1), plan_->end()});
}

// Stages with the sources that have a part in them, by name; of orders those of the sources that were met.
std::string Mixture::identity(std::uint64_t position) const {
  using nlohmann::json;
  const MixtureSpec& spec = plan_->spec();
  json orders = json::object();
  json stages = json::array();
  for (const MixtureStage& stage : plan_->stages()) {
    if (stage.begin >= std::max<std::uint64_t>(position, 1)) break;
    json entry = {{"begin", stage.begin}, {"sources", json::array()}, {"weights", stage.weights}};
    for (const std::uint32_t source : stage.sources) {
      const std::string& name = spec.names[source];
      entry["sources"].push_back(name);
      if (!orders.contains(name)) orders[name] = json::parse(orders_[source]->identity(Order::kNever));
    }
    if (stage.unit != stage.begin) entry["unit"] = stage.unit;
    if (stage.window != spec.window) {
      entry["window"] = stage.window;
      entry["group"] = spec.group;
    }
    stages.push_back(std::move(entry));
  }
  const json root = {
      {"algorithm", kAlgorithm}, {"name", "mixture"}, {"orders", orders}, {"seed", seed_}, {"stages", stages}};
  return root.dump();
}

std::string Mixture::place(std::uint64_t position) const {
  return fmt::format("stage {}", plan_->stage_at(position));
}

}  // namespace penstock::shuffle
