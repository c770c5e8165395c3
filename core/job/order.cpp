#include "core/job/order.h"

#include "core/base/error.h"
#include "core/job/compare_orders.h"

namespace penstock {

void Order::pick_at(std::span<const std::uint64_t> positions, std::span<Pick> out) const {
  // Positions that are equally far apart are one pick.
  for (std::size_t i = 0; i < positions.size();) {
    const std::uint64_t stride = i + 1 < positions.size() ? positions[i + 1] - positions[i] : 1;
    std::size_t count = 1;
    while (i + count < positions.size() && positions[i + count] - positions[i + count - 1] == stride) ++count;
    pick(positions[i], stride, out.subspan(i, count));
    i += count;
  }
}

std::uint32_t Order::source_at(std::uint64_t position) const {
  Pick found;
  pick(position, 1, {&found, 1});
  return found.source;
}

EpochSizes Order::epoch_sizes() const {
  return {{0, epoch_size()}};
}

OrderDifference Order::difference_to(std::string_view saved, std::uint64_t position) const {
  return order_difference(saved, identity(kNever), position);
}

std::shared_ptr<const Order> Order::steered(const std::shared_ptr<const Steering>& /*steering*/) const {
  raise(ErrorKind::InvalidArgument,
        "this job is not steered, so no weights can be set: give a mixture that is, "
        "penstock.Mixture(…, steered=True)");
}

std::string Order::place(std::uint64_t position) const {
  return fmt::format("epoch {}", with_commas(Epochs(epoch_sizes()).number(position)));
}

}  // namespace penstock
