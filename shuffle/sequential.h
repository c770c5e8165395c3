// Sequential: the observations as they stand, epoch after epoch. Immutable: any thread.
#pragma once

#include "core/job/order.h"

#include <cstdint>
#include <span>
#include <string>

namespace penstock::shuffle {

class Sequential final : public Order {
 public:
  /// Observations of a fetch. Neighbours are neighbours on disk without end; so many windows of 1 KiB are 1 MiB, beyond
  /// which a read gains nothing.
  static constexpr std::uint64_t kFetch = 1024;

  /// Throws InvalidArgument if `size` is 0 or above 2^52.
  explicit Sequential(std::uint64_t size);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return size_; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override;
  [[nodiscard]] std::string identity(std::uint64_t position) const override;

 private:
  std::uint64_t size_;
};

}  // namespace penstock::shuffle
