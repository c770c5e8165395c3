// Newest: the few things of a kind that were made last, for many threads that look for them. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace penstock {

template <typename T, std::size_t N>
class Newest {
 public:
  /// One of which `is_wanted` is true; null: there is none.
  template <typename Predicate>
  [[nodiscard]] std::shared_ptr<const T> find(const Predicate& is_wanted) const {
    const std::lock_guard lock(mutex_);
    for (const auto& each : kept_) {
      if (each && is_wanted(*each)) return each;
    }
    return nullptr;
  }

  /// In the place of the oldest.
  void keep(std::shared_ptr<const T> made) {
    const std::lock_guard lock(mutex_);
    kept_[next_].swap(made);  // the oldest ends with `made`, after the lock
    next_ = (next_ + 1) % N;
  }

 private:
  mutable std::mutex mutex_;
  std::array<std::shared_ptr<const T>, N> kept_;
  std::size_t next_ = 0;
};

}  // namespace penstock
