#include "bindings/python_calls.h"

#include "core/base/fork_count.h"
#include "core/base/retry_budget.h"
#include "core/io/back_off.h"
#include "core/io/read_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock::bindings {
namespace {

using std::chrono::milliseconds;
using State = StoreRequest::State;

constexpr milliseconds kLook{50};          // between two looks at calls that were given up, or are late
constexpr std::size_t kCompany = 256;      // requests among which a call looks for more of its file
constexpr std::chrono::seconds kIdle{30};  // after which a thread ends, but for the last
constexpr const char* kStopped = "its store is read no more: Python ends";

std::string path_of(const StoreRequest& request) {
  return request.file != nullptr ? request.file->path() : request.path;
}

std::string name_of(const StoreRequest& request) {
  if (request.wanted != Wanted::Range) return path_of(request);
  return fmt::format("{}, bytes {} to {}", path_of(request), with_commas(request.offset),
                     with_commas(request.offset + request.size));
}

bool is_same_file(const StoreRequest& a, const StoreRequest& b) {
  if (a.file == nullptr || b.file == nullptr) return a.file == b.file && a.path == b.path;
  return a.file == b.file || *a.file == *b.file;
}

void place(StoreRequest& request, std::span<const std::byte> bytes) {
  if (request.wanted == Wanted::Whole) {
    request.text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } else if (request.reads.empty()) {
    std::memcpy(request.into.data(), bytes.data(), bytes.size());
  } else {
    for (const Read* read : request.reads) {
      std::memcpy(read->destination, bytes.data(), read->size);
      bytes = bytes.subspan(read->size);
    }
  }
}

}  // namespace

bool StoreRequest::is_cancelled() const noexcept {
  return !reads.empty() && ReadQueue::are_cancelled(reads);
}

PythonCalls::PythonCalls(CallOptions options) : options_(options), forks_(fork_count()) {}

std::shared_ptr<PythonCalls> PythonCalls::make(CallOptions options) {
  // A child after a fork has none of the threads that wait here, and cannot destroy what they wait for.
  return {new PythonCalls(options), [](PythonCalls* calls) {
            if (calls->forks_ == fork_count()) delete calls;
          }};
}

// --- those who ask

void PythonCalls::push(Asker& asker, StoreRequests requests) {
  const std::lock_guard lock(mutex_);
  if (is_stopped_) {
    raise(ErrorKind::IoError, "{}: {}", path_of(*requests.front()), kStopped);
  }
  asker.open.reserve(asker.open.size() + requests.size());
  asker.ended.reserve(asker.ended.size() + asker.open.size() + requests.size());  // ending cannot fail
  if (queue_.empty()) last_taken_ = Clock::now();
  queue_.insert(queue_.end(), requests.begin(), requests.end());
  for (auto& request : requests) {
    request->asker = &asker;
    asker.open.push_back(std::move(request));
  }
  work_.notify_one();
}

void PythonCalls::collect(Asker& asker, StoreRequests& ended, std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  const Clock::time_point until = Clock::now() + timeout;
  while (true) {
    const Clock::time_point now = Clock::now();
    if (asker.is_woken || now >= asker.look_due) look(asker, now);
    const bool was_woken = std::exchange(asker.is_woken, false);
    if (!asker.ended.empty() || was_woken || asker.open.empty() || now >= until) break;
    asker.signal.wait_until(lock, std::min(until, asker.look_due));
  }
  std::swap(ended, asker.ended);
  asker.ended.clear();
  asker.ended.reserve(asker.open.size());
}

// Drops what nobody wants any more, and what took too long. A call that never returns keeps its thread; if all threads
// are kept so, nothing is taken from the queue, and what waits there fails too.
void PythonCalls::look(Asker& asker, Clock::time_point now) {
  asker.look_due = now + kLook;
  const bool is_stuck = now >= last_taken_ + options_.deadline;
  std::erase_if(asker.open, [](const auto& each) { return each->state == State::Ended; });
  for (const auto& request : asker.open) {
    if (request->state == State::Copying) continue;
    const bool is_late = request->attempts > 0 ? now >= request->deadline : is_stuck;
    const RetryBudget* const budget = request->budget;
    const std::exception_ptr failure = budget == nullptr                 ? nullptr
                                       : request->state == State::Queued ? budget->refusal(now)
                                                                         : budget->failure();
    if (!is_late && !failure && !request->is_cancelled()) continue;
    if (request->state == State::Queued) std::erase(queue_, request);
    if (failure) {
      request->error = failure;
      end(request);
    } else if (is_late && request->attempts == 0) {
      give_up(request,
              fmt::format("no thread was free to ask for it in {:g} s: {} calls of its store have not returned",
                          std::chrono::duration<double>(options_.deadline).count(), threads_ - idle_));
    } else if (is_late) {
      give_up(request, given_up(options_.deadline, request->attempts) + " had not returned");
    } else {
      end(request);
    }
  }
  std::erase_if(asker.open, [](const auto& each) { return each->state == State::Ended; });
}

void PythonCalls::wake(Asker& asker) {
  const std::lock_guard lock(mutex_);
  asker.is_woken = true;
  asker.signal.notify_all();
}

void PythonCalls::leave(Asker& asker) noexcept {
  std::unique_lock lock(mutex_);
  for (const auto& request : asker.open) {
    if (request->state == State::Queued) std::erase(queue_, request);
    if (request->state == State::Queued || request->state == State::UnderWay) end(request);
  }
  const auto is_copied = [](const auto& each) { return each->state != State::Copying; };
  asker.signal.wait(lock, [&] { return std::all_of(asker.open.begin(), asker.open.end(), is_copied); });
  asker.open.clear();
}

// --- threads of Python's

// The first of the queue that may begin; queue_.size(): none.
std::size_t PythonCalls::next_runnable(Clock::time_point now) const {
  if (under_way_ >= options_.connections) return queue_.size();
  const auto is_due = [now](const auto& each) { return each->due <= now; };
  return static_cast<std::size_t>(std::find_if(queue_.begin(), queue_.end(), is_due) - queue_.begin());
}

std::optional<PythonCalls::Call> PythonCalls::take() {
  std::unique_lock lock(mutex_);
  const Clock::time_point end_of_idling = Clock::now() + kIdle;
  ++idle_;
  while (true) {
    const Clock::time_point now = Clock::now();
    const bool is_too_many = now >= end_of_idling && threads_ > 1;
    const std::size_t i = next_runnable(now);
    if (is_stopped_ || (is_too_many && i == queue_.size())) {
      --idle_;
      --threads_;
      return std::nullopt;
    }
    if (i < queue_.size()) {
      --idle_;
      return take_from(i, now);
    }
    Clock::time_point until = now < end_of_idling ? end_of_idling : now + kIdle;
    if (under_way_ < options_.connections) {
      for (const auto& each : queue_) until = std::min(until, each->due);
    }
    work_.wait_until(lock, until);
  }
}

PythonCalls::Call PythonCalls::take_from(std::size_t i, Clock::time_point now) {
  last_taken_ = now;
  Call call;
  call.wanted = queue_[i]->wanted;
  call.path = path_of(*queue_[i]);
  call.requests.reserve(options_.ranges_a_call);
  const auto take_at = [&](std::size_t at) {
    const std::shared_ptr<StoreRequest> request = queue_[at];
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(at));
    if (request->attempts++ == 0) {
      request->began = now;
      request->deadline =
          now + (request->budget != nullptr ? request->budget->left(options_.deadline) : options_.deadline);
    }
    request->state = State::UnderWay;
    ++under_way_;
    call.requests.push_back(request);
  };
  take_at(i);
  const StoreRequest& first = *call.requests.front();
  // What failed is asked for alone: with ten ranges a call, one bad answer in five would leave hardly a good call.
  const bool has_company = first.wanted == Wanted::Range && first.attempts == 1;
  const std::size_t end = i + std::min(kCompany, queue_.size() - i);
  while (has_company && i < std::min(end, queue_.size()) && call.requests.size() < options_.ranges_a_call &&
         under_way_ < options_.connections) {
    if (queue_[i]->attempts == 0 && queue_[i]->wanted == Wanted::Range && is_same_file(first, *queue_[i])) {
      take_at(i);
    } else {
      ++i;
    }
  }
  // One is always there to take what is asked for while the others wait for their stores.
  call.wants_thread = idle_ == 0 && threads_ <= options_.connections;
  if (call.wants_thread) ++threads_;
  if (next_runnable(now) < queue_.size()) work_.notify_one();
  return call;
}

void PythonCalls::has_no_thread() {
  const std::lock_guard lock(mutex_);
  --threads_;
}

// With the mutex, as all below that say nothing else.
void PythonCalls::end(const std::shared_ptr<StoreRequest>& request) {
  if (request->state == State::UnderWay || request->state == State::Copying) {
    --under_way_;
    work_.notify_one();
  }
  request->state = State::Ended;
  Asker* const asker = std::exchange(request->asker, nullptr);
  asker->ended.push_back(request);
  asker->signal.notify_all();  // with the mutex: the asker may be gone as soon as it is free
}

void PythonCalls::fail(const std::shared_ptr<StoreRequest>& request, ErrorKind kind, const std::string& what) {
  const std::string message = fmt::format("{}: {}", name_of(*request), what);
  request->error = kind == ErrorKind::NotFound
                       ? std::make_exception_ptr(Error(kind, message, ENOENT, path_of(*request)))
                       : std::make_exception_ptr(Error(kind, message));
  end(request);
}

// With its answer.
void PythonCalls::end_well(const std::shared_ptr<StoreRequest>& request, Clock::time_point now) {
  if (request->budget != nullptr) request->budget->answered(request->began, request->attempts > 1, now);
  end(request);
}

// The deadline is over, for the others of its operation too.
void PythonCalls::give_up(const std::shared_ptr<StoreRequest>& request, const std::string& what) {
  RetryBudget* const budget = request->budget;
  request->budget = nullptr;
  fail(request, ErrorKind::IoError, what);
  if (budget != nullptr) budget->give_up(request->error);
}

void PythonCalls::try_again(const std::shared_ptr<StoreRequest>& request, const std::string& reason,
                            bool is_unreachable, Clock::time_point now) {
  if (is_stopped_) return fail(request, ErrorKind::IoError, kStopped);  // no thread would take it
  if (is_unreachable && !has_answered_ && request->attempts >= kFirstAttempts) {
    return fail(request, ErrorKind::IoError,
                fmt::format("no connection in {} attempts: {}", request->attempts, reason));
  }
  request->due = now + back_off(request->attempts);
  const bool is_spent = request->budget != nullptr && request->budget->is_spent(options_.deadline);
  if (request->due >= request->deadline || is_spent) {
    return give_up(request, fmt::format("{}: {}", given_up(options_.deadline, request->attempts), reason));
  }
  queue_.push_back(request);
  request->state = State::Queued;
  --under_way_;
  work_.notify_one();
}

void PythonCalls::give(const StoreRequests& requests, std::span<const std::span<const std::byte>> bytes) {
  std::vector<std::size_t> copied;
  copied.reserve(requests.size());
  {
    const std::lock_guard lock(mutex_);
    has_answered_ = true;
    const Clock::time_point now = Clock::now();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      StoreRequest& request = *requests[i];
      if (request.state != State::UnderWay) continue;  // it was left
      if (request.wanted == Wanted::Whole && bytes[i].size() > request.most) {
        fail(requests[i], ErrorKind::IoError,
             fmt::format("the file has {} bytes, and one of at most {} was expected", with_commas(bytes[i].size()),
                         with_commas(request.most)));
      } else if (request.wanted == Wanted::Range && bytes[i].size() != request.size) {
        try_again(requests[i],
                  fmt::format("{} of {} bytes came", with_commas(bytes[i].size()), with_commas(request.size)), false,
                  now);
      } else {
        request.state = State::Copying;
        copied.push_back(i);
      }
    }
  }
  for (const std::size_t i : copied) place(*requests[i], bytes[i]);
  const std::lock_guard lock(mutex_);
  for (const std::size_t i : copied) end_well(requests[i], Clock::now());
}

void PythonCalls::give_size(const StoreRequests& requests, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  has_answered_ = true;
  for (const auto& request : requests) {
    if (request->state != State::UnderWay) continue;
    request->bytes = bytes;
    end_well(request, Clock::now());
  }
}

void PythonCalls::give_names(const StoreRequests& requests, const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  has_answered_ = true;
  for (const auto& request : requests) {
    if (request->state != State::UnderWay) continue;
    request->names = names;
    end_well(request, Clock::now());
  }
}

void PythonCalls::again(const StoreRequests& requests, const std::string& reason, bool is_unreachable) {
  const std::lock_guard lock(mutex_);
  if (!is_unreachable) has_answered_ = true;
  for (const auto& request : requests) {
    if (request->state == State::UnderWay) try_again(request, reason, is_unreachable, Clock::now());
  }
}

void PythonCalls::refuse(const StoreRequests& requests, ErrorKind kind, const std::string& what) {
  const std::lock_guard lock(mutex_);
  for (const auto& request : requests) {
    if (request->state == State::UnderWay) fail(request, kind, what);
  }
}

void PythonCalls::compare_size(const StoreRequests& requests, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const auto& request : requests) {
    if (request->state != State::UnderWay) continue;
    if (request->file != nullptr && request->file->bytes != bytes) {
      fail(request, ErrorKind::Corruption,
           fmt::format("the file has {} bytes, and {} are expected", with_commas(bytes),
                       with_commas(request->file->bytes)));
    } else if (request->wanted == Wanted::Range && request->offset + request->size > bytes) {
      fail(request, ErrorKind::Corruption, fmt::format("the file has {} bytes", with_commas(bytes)));
    }
  }
}

void PythonCalls::stop() noexcept {
  if (forks_ != fork_count()) return;
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  while (!queue_.empty()) {
    const std::shared_ptr<StoreRequest> request = queue_.front();
    queue_.pop_front();
    fail(request, ErrorKind::IoError, kStopped);
  }
  work_.notify_all();
}

}  // namespace penstock::bindings
