#include "shuffle/class_members.h"

#include "core/base/error.h"

#include <algorithm>

namespace penstock::shuffle {
namespace {

// Members by class, each class's as they stand. `next`: where the next member of each label goes.
template <typename T>
std::vector<T> sorted_by_class(std::span<const std::int32_t> labels, std::vector<std::uint64_t> next) {
  std::vector<T> members(next.back());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0) members[next[static_cast<std::size_t>(labels[i])]++] = static_cast<T>(i);
  }
  return members;
}

}  // namespace

ClassMembers::ClassMembers(std::span<const std::int32_t> labels, std::uint32_t classes) {
  std::vector<std::uint64_t> by_label(std::size_t{classes} + 1);  // where each label's members begin, and their number
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    const auto label = static_cast<std::size_t>(labels[i]);
    if (label >= classes) {
      raise(ErrorKind::InvalidArgument, "label {} of observation {}: wanted below {}, or negative for none",
            with_commas(label), with_commas(i), with_commas(classes));
    }
    ++by_label[label + 1];
  }
  for (std::size_t i = 0; i < classes; ++i) by_label[i + 1] += by_label[i];
  if (by_label.back() == 0) {
    raise(ErrorKind::InvalidArgument, "none of {} labels names a class: all are negative", with_commas(labels.size()));
  }
  if (labels.size() <= UINT32_MAX) {
    members_ = sorted_by_class<std::uint32_t>(labels, by_label);
  } else {
    members_ = sorted_by_class<std::uint64_t>(labels, by_label);
  }
  starts_ = std::move(by_label);
  starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
}

DigestBytes ClassMembers::digest() const {
  Digest digest;
  digest.update(std::as_bytes(std::span(starts_)));
  std::visit([&](const auto& members) { digest.update(std::as_bytes(std::span(members))); }, members_);
  return digest.bytes();
}

}  // namespace penstock::shuffle
