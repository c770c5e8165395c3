// PythonCalls: what Python's threads are to fetch for the channels of a store, and what they brought.
//
// Threads of the engine put requests here and wait; Python's threads take them, several ranges of one file as one call,
// and answer. No thread waits for the GIL with the mutex held, and none of the engine ever does, so whoever holds the
// GIL may wait for an answer. Any thread; but an Asker is one thread's. Stays as it is in a child after a fork, where
// its threads are not.
#pragma once

#include "core/base/error.h"
#include "core/base/retry_budget.h"
#include "core/io/read.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::bindings {

struct CallOptions {
  std::size_t connections = 64;  // ranges under way at most, and so threads
  std::size_t ranges_a_call = 1;
  // Of a request, from its first attempt on; of one that no thread has taken, while none takes any.
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);
};

enum class Wanted { Range, Whole, Size, Names };

struct Asker;

/// One thing that a store is asked for. Of the asker until it is pushed and after it has ended.
struct StoreRequest {
  using Clock = std::chrono::steady_clock;
  enum class State { Queued, UnderWay, Copying, Ended };

  Wanted wanted = Wanted::Range;
  std::string path;  // may be empty where there is a file
  const File* file = nullptr;
  std::uint64_t offset = 0;  // of a range
  std::uint64_t size = 0;
  std::vector<Read*> reads;        // what the range is for: neighbours
  std::span<std::byte> into = {};  // where it goes that is for no read
  std::uint64_t most = 0;          // bytes of a whole file

  std::string text;  // the answers
  std::uint64_t bytes = 0;
  std::vector<std::string> names;
  std::exception_ptr error;

  RetryBudget* budget = nullptr;  // of the operation that it is for; outlives the wait for it

  State state = State::Queued;  // what follows is PythonCalls'
  Asker* asker = nullptr;
  std::uint32_t attempts = 0;
  Clock::time_point due = {};
  Clock::time_point began = {};
  Clock::time_point deadline = {};

  [[nodiscard]] bool is_cancelled() const noexcept;
};

using StoreRequests = std::vector<std::shared_ptr<StoreRequest>>;

/// One that waits for what it has asked for.
struct Asker {
  StoreRequests open;   // pushed, and not seen to have ended
  StoreRequests ended;  // not collected
  std::condition_variable signal;
  bool is_woken = false;
  StoreRequest::Clock::time_point look_due = {};
};

class PythonCalls : public std::enable_shared_from_this<PythonCalls> {
 public:
  using Clock = StoreRequest::Clock;

  static std::shared_ptr<PythonCalls> make(CallOptions options);

  /// What a thread of Python's is to do: ranges of one file, or one request of another kind.
  struct Call {
    Wanted wanted = Wanted::Range;
    std::string path;
    StoreRequests requests;
    bool wants_thread = false;  // no other thread waits for something to do
  };

  // --- those who ask
  /// Throws std::bad_alloc, and IoError after stop(); then none was taken.
  void push(Asker& asker, StoreRequests requests);
  /// Moves what has ended to `ended`. Waits at most `timeout` for the first; less after wake().
  void collect(Asker& asker, StoreRequests& ended, std::chrono::nanoseconds timeout);
  void wake(Asker& asker);
  /// Nothing that the asker has asked for is touched any more.
  void leave(Asker& asker) noexcept;

  // --- threads of Python's; none of these touches Python
  /// Waits for something to do. None: the thread is to end.
  std::optional<Call> take();
  /// A thread that was wanted could not be started.
  void has_no_thread();
  /// The bytes of each range. What has not the right length is asked for again.
  void give(const StoreRequests& requests, std::span<const std::span<const std::byte>> bytes);
  void give_size(const StoreRequests& requests, std::uint64_t bytes);
  void give_names(const StoreRequests& requests, const std::vector<std::string>& names);
  /// They failed in a way that may pass.
  void again(const StoreRequests& requests, const std::string& reason, bool is_unreachable);
  void refuse(const StoreRequests& requests, ErrorKind kind, const std::string& what);
  /// The file has so many bytes: refuses ranges that were made for another size.
  void compare_size(const StoreRequests& requests, std::uint64_t bytes);

  /// Nobody asks any more: threads end, and what is waited for fails. Nothing in a child after a fork, where a thread
  /// of its parent's may hold the mutex for ever.
  void stop() noexcept;
  [[nodiscard]] std::size_t connections() const noexcept { return options_.connections; }

 private:
  explicit PythonCalls(CallOptions options);

  [[nodiscard]] std::size_t next_runnable(Clock::time_point now) const;
  Call take_from(std::size_t i, Clock::time_point now);
  void end(const std::shared_ptr<StoreRequest>& request);
  void end_well(const std::shared_ptr<StoreRequest>& request, Clock::time_point now);
  void give_up(const std::shared_ptr<StoreRequest>& request, const std::string& what);
  void fail(const std::shared_ptr<StoreRequest>& request, ErrorKind kind, const std::string& what);
  void try_again(const std::shared_ptr<StoreRequest>& request, const std::string& reason, bool is_unreachable,
                 Clock::time_point now);
  void look(Asker& asker, Clock::time_point now);

  const CallOptions options_;
  const std::uint64_t forks_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::shared_ptr<StoreRequest>> queue_;  // also those that are due later
  std::size_t under_way_ = 0;
  Clock::time_point last_taken_ = {};  // or pushed to an empty queue
  std::size_t threads_ = 1;
  std::size_t idle_ = 0;
  bool has_answered_ = false;
  bool is_stopped_ = false;
};

}  // namespace penstock::bindings
