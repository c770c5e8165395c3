#include "shuffle/grown.h"

#include "core/base/error.h"
#include "core/job/epochs.h"
#include "core/job/position.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace penstock::shuffle {

Grown::Grown(std::vector<Part> parts) : parts_(std::move(parts)) {
  const Epochs epochs(epoch_sizes());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const std::uint64_t size = part.order->epoch_size();
    if (part.order->end(0) != kNever) raise(ErrorKind::InvalidArgument, "order grown: a part has an order with stages");
    // Numbers of fetches rise with positions, as long as parts do not shrink.
    if (i > 0 && size < parts_[i - 1].order->epoch_size()) {
      raise(ErrorKind::InvalidArgument, "order grown: {} observations, then {}: a dataset that grew has no fewer",
            with_commas(parts_[i - 1].order->epoch_size()), with_commas(size));
    }
    std::uint64_t own = 0;
    if (__builtin_mul_overflow(epochs.number(part.begin), size, &own) || own >= kMostPosition) {
      raise(ErrorKind::InvalidArgument, "order grown: epoch {} of {} observations is beyond position 2^63",
            with_commas(epochs.number(part.begin)), with_commas(size));
    }
    shifts_.push_back(own - part.begin);
  }
}

EpochSizes Grown::epoch_sizes() const {
  EpochSizes sizes;
  for (const Part& part : parts_) sizes.emplace_back(part.begin, part.order->epoch_size());
  return sizes;
}

std::size_t Grown::part_of(std::uint64_t position) const noexcept {
  const auto after = std::upper_bound(parts_.begin(), parts_.end(), position,
                                      [](std::uint64_t p, const Part& part) { return p < part.begin; });
  return static_cast<std::size_t>(after - parts_.begin()) - 1;
}

void Grown::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  if (stride == 0) raise(ErrorKind::InvalidArgument, "positions with stride 0: wanted at least 1");
  for (std::size_t done = 0; done < out.size();) {
    const std::uint64_t position = first + done * stride;
    const std::size_t part = part_of(position);
    const std::uint64_t left = (end_of(part) - 1 - position) / stride + 1;
    const std::size_t count = std::min<std::uint64_t>(left, out.size() - done);
    parts_[part].order->pick(position + shifts_[part], stride, out.subspan(done, count));
    done += count;
  }
}

void Grown::pick_at(std::span<const std::uint64_t> positions, std::span<Pick> out) const {
  std::vector<std::uint64_t> own;
  for (std::size_t done = 0; done < positions.size();) {
    const std::size_t part = part_of(positions[done]);
    own.clear();
    for (std::size_t i = done; i < positions.size() && positions[i] < end_of(part); ++i) {
      own.push_back(positions[i] + shifts_[part]);
    }
    parts_[part].order->pick_at(own, out.subspan(done, own.size()));
    done += own.size();
  }
}

std::uint64_t Grown::fetch_end(std::uint64_t position) const {
  const std::size_t part = part_of(position);
  return std::min(parts_[part].order->fetch_end(position + shifts_[part]) - shifts_[part], end_of(part));
}

bool Grown::may_wait() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.order->may_wait(); });
}

std::string Grown::identity(std::uint64_t position) const {
  std::string stages;
  for (const Part& part : parts_) {
    if (part.begin >= position && !stages.empty()) break;
    stages += fmt::format(R"({}{{"begin":{},"order":{},"source":{}}})", stages.empty() ? "" : ",", part.begin,
                          part.order->identity(kNever), part.source);
  }
  return fmt::format(R"({{"name":"grown","stages":[{}]}})", stages);
}

}  // namespace penstock::shuffle
