// Sequential: the observations as they stand, epoch after epoch; or mixed within fetches of neighbours.
//
// Immutable: any thread.
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

  /// As they stand. Throws InvalidArgument if `size` is 0 or above 2^52.
  explicit Sequential(std::uint64_t size);
  /// Each `fetch` observations that follow one another, in an order that (seed, epoch) chooses. Throws InvalidArgument
  /// if `size` or `fetch` is 0, or `size` above 2^52.
  Sequential(std::uint64_t size, std::uint64_t seed, std::uint64_t fetch);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return size_; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override;
  [[nodiscard]] std::string identity(std::uint64_t position) const override;

 private:
  void mix(std::span<Pick> picks, std::uint32_t epoch) const;

  std::uint64_t size_;
  std::uint64_t seed_ = 0;
  std::uint64_t fetch_ = kFetch;
  bool mixes_ = false;
};

}  // namespace penstock::shuffle
