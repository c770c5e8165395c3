// HttpChannel: ranges of files by HTTP, many under way at once: one Multi of libcurl.
//
// A run of neighbours is one request. What fails in a way that may pass is asked for again, after a pause, until the
// deadline; never beside its first attempt. Owned by one thread of one process: libcurl's handles do not survive a
// fork.
#pragma once

#include "core/io/byte_store.h"
#include "core/io/http/curl.h"
#include "core/io/http/http_shared.h"
#include "core/io/http/multi.h"
#include "core/io/http/transfer.h"
#include "core/io/read_queue.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

class HttpChannel final : public Channel {
 public:
  explicit HttpChannel(std::shared_ptr<HttpShared> shared);
  ~HttpChannel() override;

  void submit(std::span<Read* const> reads) override;
  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override;
  void wake() override;

  /// Requests of the caller's own, to their ends, many under way at once: their replies in the same order. Throws why
  /// the first of them failed.
  std::vector<Reply> ask(std::vector<Request> requests);

 private:
  using Clock = Transfer::Clock;

  void begin_some();
  void begin_paused();
  void begin_waiting();
  std::unique_ptr<Transfer> make_transfer();
  bool take_next();
  bool may_begin();
  bool launch(std::vector<std::unique_ptr<Transfer>>& from, std::size_t i);
  void finish(Transfer& transfer);
  void advance(std::chrono::nanoseconds timeout);
  void drop_cancelled();
  [[nodiscard]] std::chrono::nanoseconds time_to_wait(std::chrono::nanoseconds most) const;
  bool settle_ended();
  void settle(Transfer& transfer, CURLcode code);
  void give_up_stalled(Clock::time_point now);
  std::size_t hand_out(std::span<Read*> done);

  const std::shared_ptr<HttpShared> shared_;
  const Curl& curl_;
  Multi multi_;
  const std::uint64_t forks_;
  ReadQueue queue_;        // not begun
  ReadQueue ended_;        // not handed out
  std::size_t reads_ = 0;  // submitted and not handed out
  std::vector<std::unique_ptr<Transfer>> idle_;
  std::vector<std::unique_ptr<Transfer>> active_;   // in the Multi
  std::vector<std::unique_ptr<Transfer>> paused_;   // for another attempt
  std::vector<std::unique_ptr<Transfer>> waiting_;  // for an address
  Clock::time_point looked_at_ = {};                // at the sockets
  Clock::time_point stalls_at_ = {};                // was looked for them
  Clock::time_point starves_since_ = {};            // refused, and nothing of its own under way
  bool was_refused_ = false;                        // the process has enough requests under way
  struct Waker;
  const std::shared_ptr<Waker> waker_;  // of those who make addresses, who may outlive the channel
  const std::function<void()> later_;
};

}  // namespace penstock
