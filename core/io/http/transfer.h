// Transfer: one request to a server and its attempts: an easy handle of libcurl, reused.
//
// The header of a reply is judged before its body comes; only the body of a good one reaches its destination, and never
// more than was asked for. Of the thread that drives it.
#pragma once

#include "core/base/error.h"
#include "core/base/retry_budget.h"
#include "core/io/http/curl.h"
#include "core/io/http/http_shared.h"
#include "core/io/http/reply.h"
#include "core/io/http/request_headers.h"
#include "core/io/read.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock {

/// What a transfer asks for.
struct Request {
  std::string path;              // in the store
  std::vector<Read*> reads;      // neighbours whose bytes it brings; empty: `into` or `whole`
  std::span<std::byte> into;     // where the bytes go that no read wants
  std::size_t number = 0;        // among those of one caller
  bool may_be_short = false;     // the file may end before `end`
  bool is_same_file = false;     // of the version that was there when the path's size was asked for; without `file`
  std::string* whole = nullptr;  // the whole file, whatever its size
  std::uint64_t most = 0;        // bytes of a whole file
  const File* file = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t file_bytes = 0;
};

class Transfer {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Next { Done, Failed, Again, AtOnce };

  Transfer(const Curl& curl, HttpShared& shared);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void take(Request request);
  /// A request for neighbours.
  void take(std::span<Read* const> run);
  /// Looks for the address; false: it is not known yet, and `later` is called once it is. Throws what keeps it from
  /// being known, also that the deadline is over, of this request or of another one of the same operation.
  bool find_address(const std::function<void()>& later, Clock::time_point now);
  [[nodiscard]] Clock::time_point deadline() const noexcept { return deadline_; }
  /// Makes the handle ready for the next attempt, at the address that was found.
  void begin_attempt(Clock::time_point now);
  /// Of an attempt that is under way: whether next to nothing has come for so long that it is to be given up, or
  /// lately, after the deadline; or its operation was. Asked some times a second: libcurl's own watch costs each
  /// request a timer or two.
  bool is_stalled(Clock::time_point now) noexcept;
  /// After the attempt: what is to be done. Again: not before due(). Failed: error() says why.
  Next end_attempt(CURLcode code, Clock::time_point now);
  /// It could not begin.
  void fail(std::exception_ptr why) noexcept { error_ = std::move(why); }

  [[nodiscard]] CURL* handle() const noexcept { return handle_; }
  [[nodiscard]] Request& request() noexcept { return request_; }
  [[nodiscard]] const Reply& reply() const noexcept { return reply_; }
  [[nodiscard]] Clock::time_point due() const noexcept { return due_; }
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
  [[nodiscard]] std::uint32_t attempts() const noexcept { return attempts_; }

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  template <typename Take>
  std::size_t guarded(const Take& take) noexcept;
  std::size_t take_body(std::span<const char> bytes);
  void place(std::span<const char> bytes);
  void begin();
  void set_url();
  void judge_once();
  Judgement judge_whole() const;
  [[nodiscard]] Judgement judge_code(CURLcode code) const;
  void judge_attempt(CURLcode code);
  Next follow();
  bool renew();
  Next again(const std::string& reason, Clock::time_point now);
  [[nodiscard]] std::string without_secrets(std::string text) const;
  Next refuse(ErrorKind kind, const std::string& what);
  [[nodiscard]] std::string name() const;
  /// A whole file is coming, and the server has not said how long it is.
  [[nodiscard]] bool is_endless() const noexcept { return request_.whole != nullptr && got_ > 0 && !reply_.length; }
  [[nodiscard]] bool is_budget_spent() const noexcept {
    return budget_ != nullptr && budget_->is_spent(shared_.options.deadline);
  }

  const Curl& curl_;
  HttpShared& shared_;
  CURL* handle_;
  CURLU* parsed_ = nullptr;  // the address that the handle has
  RequestHeaders headers_;
  Request request_;
  std::string address_;
  std::string url_;  // that the handle has
  std::string etag_;
  Reply reply_;
  std::array<char, CURL_ERROR_SIZE> words_{};  // of libcurl's, of the attempt that failed last
  std::string told_;                           // the first of the body of a reply that says what was wrong
  Judgement judgement_;
  bool is_judged_ = false;
  std::uint64_t got_ = 0;  // bytes of the body
  std::size_t piece_ = 0;  // of the reads: where the next byte goes
  std::uint64_t piece_got_ = 0;
  std::uint32_t attempts_ = 0;
  std::uint32_t redirects_ = 0;
  std::uint32_t renewals_ = 0;
  std::size_t halvings_then_ = 0;  // of the limit of requests, when the attempt began
  bool is_empty_ = false;          // the file has no bytes
  bool is_unreachable_ = false;    // the attempt reached no server
  std::uint64_t got_then_ = 0;     // of the body, when it was last looked whether it stalls
  Clock::time_point looked_at_;    // then
  Clock::time_point was_fast_at_;  // the last of these times when it did not
  RetryBudget* budget_ = nullptr;  // of the operation that it is for
  Clock::time_point began_;        // the first attempt, or the wait for its address
  Clock::time_point deadline_;
  Clock::time_point due_;
  std::exception_ptr error_;
};

}  // namespace penstock
