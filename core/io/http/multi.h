// Multi: transfers of libcurl that are under way together: one multi handle, and what it waits for.
//
// Only transfers whose socket is ready are run, whatever the number under way. A kept connection stays watched between
// two of its requests: that saves two calls of the system for each. Of one thread, but for wake(), of one process:
// libcurl's handles do not survive a fork.
#pragma once

#include "core/io/http/curl.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace penstock {

class Multi {
 public:
  /// Keeps up to `connections` open. Throws IoError where the process has no more descriptors.
  Multi(const Curl& curl, std::size_t connections);
  /// All transfers were removed, and the handles are gone, or it was abandoned.
  ~Multi();
  Multi(const Multi&) = delete;
  Multi& operator=(const Multi&) = delete;

  /// Before the first add(): has it open and close its sockets through this.
  void prepare(CURL* transfer);
  void add(CURL* transfer);
  void remove(CURL* transfer) noexcept;
  /// Runs what is ready or due. If nothing is, waits for it, at most `timeout`, and less after wake(). Throws IoError.
  void run(std::chrono::nanoseconds timeout);
  /// Runs what is due: transfers that were just added.
  void run_due();
  /// One that has ended and is to be removed; null if there is none.
  const CURLMsg* next_ended() noexcept;
  /// Makes a run() of another thread return, or the next one if there is none. Any thread.
  void wake() const noexcept;
  /// In a child after a fork: connections are the parent's and stay as they are.
  void abandon() noexcept { multi_ = nullptr; }

 private:
  using Clock = std::chrono::steady_clock;

  static int on_socket(CURL* handle, curl_socket_t socket, int what, void* self, void* known);
  static int on_open(void* self, curl_socket_t socket, curlsocktype purpose);
  static int on_close(void* self, curl_socket_t socket);
  static int on_time(CURLM* multi, long milliseconds, void* self);
  int watch(curl_socket_t socket, std::uint32_t events);
  void forget(curl_socket_t socket) noexcept;
  void close_all() noexcept;

  const Curl& curl_;
  CURLM* multi_ = nullptr;
  int epoll_ = -1;
  int wakeup_ = -1;
  struct Socket {
    bool is_connection = false;  // and so closed by on_close; libcurl has others for looking up names
    bool is_wanted = false;      // libcurl waits for it
    bool is_watched = false;     // epoll tells of it
    std::uint32_t events = 0;    // of which
  };
  std::unordered_map<curl_socket_t, Socket> sockets_;
  std::optional<Clock::time_point> due_;  // libcurl's next time
};

}  // namespace penstock
