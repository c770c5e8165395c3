// Sequential: the observations as they stand, epoch after epoch. Immutable: any thread.
#pragma once

#include "core/job/order.h"

#include <cstdint>
#include <span>
#include <string>

namespace penstock::shuffle {

class Sequential final : public Order {
 public:
  /// Neighbours are neighbours on disk without end; this many bound what is planned at a time.
  static constexpr std::uint64_t kGroup = 256;

  /// Throws InvalidArgument if `size` is 0 or above 2^52.
  explicit Sequential(std::uint64_t size);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return size_; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t group(std::uint64_t) const override { return kGroup < size_ ? kGroup : size_; }
  [[nodiscard]] std::string identity(std::uint64_t position) const override;

 private:
  std::uint64_t size_;
};

}  // namespace penstock::shuffle
