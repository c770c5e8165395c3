// SignedAddresses: addresses signed elsewhere, each for a while.
//
// Channels ask for addresses; who signs takes the paths that were asked for, in bulk, and gives their addresses. An
// address is signed anew when half of its time is over, and used meanwhile. Any thread.
#pragma once

#include "core/base/error.h"
#include "core/base/fork_count.h"
#include "core/io/http/http_shared.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace penstock {

class SignedAddresses final : public Addresses {
 public:
  using Clock = std::chrono::steady_clock;

  /// `credentials` says in words with what it signs.
  explicit SignedAddresses(std::string credentials) : credentials_(std::move(credentials)), forks_(fork_count()) {}
  /// The same; it stays as it is in a child after a fork.
  static std::shared_ptr<SignedAddresses> make(std::string credentials);

  std::optional<std::string> of(const std::string& path, const std::function<void()>& later) override;
  bool renew(const std::string& path) override;
  [[nodiscard]] bool are_secret() const override { return true; }
  [[nodiscard]] std::string credentials() const override { return credentials_; }
  std::vector<std::string> list(const std::string& path) override;

  /// Paths that are to be signed, at most `most`; waits for the first of them, at most `patience`. None after stop().
  std::vector<std::string> take(std::size_t most, std::chrono::nanoseconds patience);
  /// The addresses of paths that were taken, which hold for `lifetime`.
  void give(const std::vector<std::pair<std::string, std::string>>& addresses, std::chrono::nanoseconds lifetime);
  /// They cannot be signed: who asked, or asks for them again in the next second, gets this error.
  void refuse(const std::vector<std::string>& paths, const Error& error);
  /// Nobody signs any more: who waits gets an error. Nothing in a child after a fork, where a thread of the parent may
  /// hold the lock.
  void stop() override;
  [[nodiscard]] bool is_stopped() const;

 private:
  struct Entry {
    std::string address;
    Clock::time_point renew_at;
    Clock::time_point ends_at;
    std::optional<Error> error;
    bool is_asked = false;  // it is in the queue, or taken
    std::vector<std::function<void()>> waiting;
  };

  void ask(const std::string& path, Entry& entry);

  const std::string credentials_;
  const std::uint64_t forks_;
  mutable std::mutex mutex_;
  std::condition_variable asked_;
  std::unordered_map<std::string, Entry> entries_;
  std::vector<std::string> queue_;
  bool stopped_ = false;
};

}  // namespace penstock
