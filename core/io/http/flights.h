// FlightLimit: how many requests a process may have under way at one server, over all its stores and their channels.
//
// A server that says it is busy (429, 503) is asked half as much; each full round of good answers allows one more. Any
// thread; no locks, so that a fork leaves nothing held.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace penstock {

class FlightLimit {
 public:
  explicit FlightLimit(std::size_t most) : most_(most), limit_(most) {}

  /// Counts a request, if there may be one more.
  bool try_begin() noexcept;
  /// Counts one all the same.
  void begin() noexcept { under_way_.fetch_add(1, std::memory_order_relaxed); }
  /// Every begun request ends once.
  void end() noexcept { under_way_.fetch_sub(1, std::memory_order_relaxed); }
  /// The server was busy when it answered a request that began after so many halvings(): halves the limit, once for all
  /// that were under way together.
  void was_busy(std::size_t halvings_then) noexcept;
  void was_good() noexcept;
  [[nodiscard]] std::size_t halvings() const noexcept { return halvings_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t under_way() const noexcept { return under_way_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t most() const noexcept { return most_; }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> limit_;
  std::atomic<std::size_t> halvings_{0};
  std::atomic<std::size_t> under_way_{0};
  std::atomic<std::size_t> good_{0};  // answers since the limit last changed
};

/// The limit of this process for all that asks `server` with at most `most` requests at once. It stays as long as the
/// process. Throws std::bad_alloc.
FlightLimit& flights_to(const std::string& server, std::size_t most);

}  // namespace penstock
