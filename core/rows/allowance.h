// Allowance: how much memory a source may use to keep what it has read of its small files.
//
// The source makes it and states the amounts at which keeping more pays. The owner of the memory bound grants an amount
// before the first row is read; until then nothing is kept. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock {

class Allowance {
 public:
  /// `steps`: useful amounts in bytes, rising; each includes those before it.
  explicit Allowance(std::vector<std::uint64_t> steps) : steps_(std::move(steps)) {}

  /// Grants the largest step that is at most `bytes`, 0 if there is none; returns what is granted. The first call
  /// decides: later calls change nothing and return the same.
  std::uint64_t grant(std::uint64_t bytes) noexcept;
  /// Bytes; 0 before grant().
  [[nodiscard]] std::uint64_t granted() const noexcept {
    const std::uint64_t bytes = granted_.load(std::memory_order_acquire);
    return bytes == kUndecided ? 0 : bytes;
  }
  [[nodiscard]] const std::vector<std::uint64_t>& steps() const noexcept { return steps_; }

 private:
  static constexpr std::uint64_t kUndecided = UINT64_MAX;

  const std::vector<std::uint64_t> steps_;
  std::atomic<std::uint64_t> granted_ = kUndecided;
};

}  // namespace penstock
