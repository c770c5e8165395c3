// FileChanges: whether a read found that its file changed, after which nothing that was read ahead is delivered.
//
// Threads note errors of reads; the consumer takes the first. Any thread.
#pragma once

#include "core/base/sync.h"
#include "core/io/changed_file.h"

#include <exception>
#include <mutex>
#include <utility>

namespace penstock {

class FileChanges {
 public:
  /// The error of a read; kept if it is a ChangedFile.
  void note(const std::exception_ptr& error) noexcept {
    try {
      std::rethrow_exception(error);
    } catch (const ChangedFile&) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = error;
      any_.store(true, std::memory_order_release);
    } catch (...) {  // of its row alone
    }
  }

  /// The first since the last call; null: there was none.
  [[nodiscard]] std::exception_ptr take() noexcept {
    if (!any_.load(std::memory_order_acquire)) return nullptr;
    const std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_relaxed);
    return std::exchange(first_, nullptr);
  }

 private:
  sync::Atomic<bool> any_{false};
  sync::Mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace penstock
