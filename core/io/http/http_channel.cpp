#include "core/io/http/http_channel.h"

#include "core/base/error.h"
#include "core/base/fork_count.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <mutex>
#include <utility>

namespace penstock {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::uint64_t kMostBytes = 8 << 20;  // of one request for neighbours
// Between two looks at the sockets, for a caller that has more to ask for: requests that begin together find the server
// awake, and replies that are taken together cost one look.
constexpr std::chrono::microseconds kBetweenLooks{2000};
constexpr milliseconds kLook{50};      // between two looks around while one request is waited for
constexpr milliseconds kStalls{250};   // between two looks for requests that have stalled
constexpr milliseconds kOthers{5};     // until another channel's request may have ended
constexpr milliseconds kStarves{500};  // without a request of its own, where others have all

// Takes the element at `i` out of an unordered list.
std::unique_ptr<Transfer> take_at(std::vector<std::unique_ptr<Transfer>>& list, std::size_t i) {
  std::unique_ptr<Transfer> taken = std::move(list[i]);
  list[i] = std::move(list.back());
  list.pop_back();
  return taken;
}

}  // namespace

// Wakes the channel for as long as it is there.
struct HttpChannel::Waker {
  void call() {
    const std::lock_guard lock(mutex);
    is_set = true;
    if (channel != nullptr) channel->wake();
  }
  void set() {
    const std::lock_guard lock(mutex);
    is_set = true;
  }
  bool take() {
    const std::lock_guard lock(mutex);
    return std::exchange(is_set, false);
  }
  void leave() {
    const std::lock_guard lock(mutex);
    channel = nullptr;
  }

  std::mutex mutex;
  HttpChannel* channel = nullptr;
  bool is_set = false;
};

HttpChannel::HttpChannel(std::shared_ptr<HttpShared> shared)
    : shared_(std::move(shared)),
      curl_(curl()),
      multi_(curl_, shared_->options.connections),
      forks_(fork_count()),
      waker_(std::make_shared<Waker>()),
      later_([waker = waker_] { waker->call(); }) {
  waker_->channel = this;
}

HttpChannel::~HttpChannel() {
  if (forks_ != fork_count()) {  // connections are the parent's: left as they are
    multi_.abandon();
    for (auto* list : {&idle_, &active_, &paused_, &waiting_}) {
      for (auto& each : *list) static_cast<void>(each.release());
    }
    return;
  }
  waker_->leave();
  for (const auto& each : active_) {
    multi_.remove(each->handle());
    shared_->flights.end();
  }
  for (auto* list : {&idle_, &active_, &paused_, &waiting_}) list->clear();
}

void HttpChannel::submit(std::span<Read* const> reads) {
  ended_.reserve(reads_ + reads.size());  // handing out cannot fail
  queue_.push(reads);
  reads_ += reads.size();
}

void HttpChannel::wake() {
  multi_.wake();
}

std::size_t HttpChannel::hand_out(std::span<Read*> done) {
  const std::size_t count = std::min(done.size(), ended_.size());
  std::copy_n(ended_.front().begin(), count, done.begin());
  ended_.pop(count);
  reads_ -= count;
  return count;
}

std::size_t HttpChannel::wait(std::span<Read*> done, nanoseconds timeout) {
  if (!ended_.empty()) return hand_out(done);
  if (queue_.empty() && active_.empty() && paused_.empty() && waiting_.empty()) return 0;
  advance(timeout);
  if (timeout.count() > 0) drop_cancelled();
  return hand_out(done);
}

// One step of everything that is under way, after a wait of at most `timeout` where there is nothing to do.
void HttpChannel::advance(nanoseconds timeout) {
  begin_some();
  multi_.run_due();
  const Clock::time_point now = Clock::now();
  const bool may_take_more = queue_.empty() && active_.size() < shared_->options.connections;
  if (timeout.count() <= 0 && may_take_more && now - looked_at_ < kBetweenLooks) return;
  looked_at_ = now;
  bool has_ended = settle_ended();  // with its request: the reply was there at once
  multi_.run(has_ended || !ended_.empty() ? nanoseconds(0) : time_to_wait(timeout));
  has_ended = settle_ended() || has_ended;
  if (now - stalls_at_ >= kStalls) {
    stalls_at_ = now;
    give_up_stalled(now);
  }
  if (!has_ended) return;
  begin_some();  // connections are free
  multi_.run_due();
}

// Whether libcurl was done with some.
bool HttpChannel::settle_ended() {
  bool has_ended = false;
  while (const CURLMsg* const message = multi_.next_ended()) {
    char* self = nullptr;
    (void)curl_.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &self);
    settle(*reinterpret_cast<Transfer*>(self), message->data.result);
    has_ended = true;
  }
  return has_ended;
}

void HttpChannel::give_up_stalled(Clock::time_point now) {
  for (std::size_t i = active_.size(); i-- > 0;) {
    if (active_[i]->is_stalled(now)) settle(*active_[i], CURLE_OPERATION_TIMEDOUT);
  }
}

void HttpChannel::begin_some() {
  was_refused_ = false;
  begin_waiting();
  begin_paused();
  while (!was_refused_ && !queue_.empty() && take_next()) {
  }
}

// Those whose addresses may be there now.
void HttpChannel::begin_waiting() {
  if (waiting_.empty()) return;
  const Clock::time_point now = Clock::now();
  const auto is_late = [&](const auto& each) { return each->deadline() <= now; };
  if (!waker_->take() && std::none_of(waiting_.begin(), waiting_.end(), is_late)) return;
  for (std::size_t i = waiting_.size(); i-- > 0 && !was_refused_;) launch(waiting_, i);
  if (was_refused_) waker_->set();  // the others' addresses may be there too
}

// Those that are due for another attempt.
void HttpChannel::begin_paused() {
  if (paused_.empty()) return;
  const Clock::time_point now = Clock::now();
  for (std::size_t i = paused_.size(); i-- > 0 && !was_refused_;) {
    if (paused_[i]->due() <= now) launch(paused_, i);
  }
}

std::unique_ptr<Transfer> HttpChannel::make_transfer() {
  auto made = std::make_unique<Transfer>(curl_, *shared_);
  multi_.prepare(made->handle());
  // So that none needs memory to go from one list to another: whoever notes an end may have none.
  const std::size_t count = idle_.size() + active_.size() + paused_.size() + waiting_.size() + 1;
  for (auto* list : {&idle_, &active_, &paused_, &waiting_}) list->reserve(count);
  return made;
}

// The next run of the queue; false: no more are begun now.
bool HttpChannel::take_next() {
  const std::span<Read* const> run = queue_.front_run(kMostBytes);
  if (ReadQueue::are_cancelled(run)) {
    ended_.push(run);
    queue_.pop(run.size());
    return true;
  }
  // Those that wait for an address count, so that what is asked for stays bounded.
  if (active_.size() + waiting_.size() >= shared_->options.connections) return false;
  try {
    if (idle_.empty()) idle_.push_back(make_transfer());
    idle_.back()->take(run);
  } catch (...) {  // no memory
    for (Read* read : run) read->fail(present_error());
    ended_.push(run);
    queue_.pop(run.size());
    return true;
  }
  if (!launch(idle_, idle_.size() - 1)) return false;
  queue_.pop(run.size());
  return true;
}

// Counts one more request. A thread that waits for this channel may have another one, whose requests end only once it
// goes on: so what is refused for long begins some all the same.
bool HttpChannel::may_begin() {
  FlightLimit& flights = shared_->flights;
  if (flights.try_begin()) {
    starves_since_ = {};
    return true;
  }
  const Clock::time_point now = Clock::now();
  if (active_.empty() && starves_since_ == Clock::time_point()) starves_since_ = now;
  const bool starves = starves_since_ != Clock::time_point() && now - starves_since_ >= kStarves;
  if (!starves || active_.size() >= std::max<std::size_t>(flights.limit() / 8, 1)) return false;
  flights.begin();
  return true;
}

// Hands the next attempt of from[i] to libcurl, or leaves it to wait for its address. False: the process has enough
// requests under way, and it stays where it is.
bool HttpChannel::launch(std::vector<std::unique_ptr<Transfer>>& from, std::size_t i) {
  was_refused_ = !may_begin();
  if (was_refused_) return false;
  Transfer& transfer = *from[i];
  active_.push_back(take_at(from, i));
  const Clock::time_point now = Clock::now();
  try {
    const Request& request = transfer.request();
    if (request.file != nullptr && request.end > request.file->bytes) {
      raise(ErrorKind::Corruption, "{}: bytes {} to {} are wanted, and the file has {}", request.path,
            with_commas(request.begin), with_commas(request.end), with_commas(request.file->bytes));
    }
    if (!transfer.find_address(later_, now)) {
      shared_->flights.end();
      waiting_.push_back(take_at(active_, active_.size() - 1));
      return true;
    }
    transfer.begin_attempt(now);
    multi_.add(transfer.handle());
  } catch (...) {
    transfer.fail(present_error());
    shared_->flights.end();
    finish(transfer);
  }
  return true;
}

// libcurl is done with an attempt.
void HttpChannel::settle(Transfer& transfer, CURLcode code) {
  multi_.remove(transfer.handle());
  shared_->flights.end();
  Transfer::Next next = Transfer::Next::Failed;
  try {
    next = transfer.end_attempt(code, Clock::now());
  } catch (...) {
    transfer.fail(present_error());
  }
  if (next == Transfer::Next::Done || next == Transfer::Next::Failed) return finish(transfer);
  const auto is_this = [&](const auto& each) { return each.get() == &transfer; };
  const auto at = std::find_if(active_.begin(), active_.end(), is_this) - active_.begin();
  paused_.push_back(take_at(active_, static_cast<std::size_t>(at)));
}

// Its reads have ended, one way or the other.
void HttpChannel::finish(Transfer& transfer) {
  for (Read* read : transfer.request().reads) {
    read->retries += transfer.attempts() > 0 ? transfer.attempts() - 1 : 0;
    if (transfer.error()) read->fail(transfer.error());
  }
  ended_.push(transfer.request().reads);
  const auto is_this = [&](const auto& each) { return each.get() == &transfer; };
  const auto at = std::find_if(active_.begin(), active_.end(), is_this) - active_.begin();
  idle_.push_back(take_at(active_, static_cast<std::size_t>(at)));
}

// Reads that were given up are left where they are: a stalled server keeps no loader from closing.
void HttpChannel::drop_cancelled() {
  const auto drop = [&](std::vector<std::unique_ptr<Transfer>>& list, bool is_active) {
    for (std::size_t i = list.size(); i-- > 0;) {
      const std::vector<Read*>& reads = list[i]->request().reads;
      if (reads.empty() || !ReadQueue::are_cancelled(reads)) continue;
      if (is_active) {
        multi_.remove(list[i]->handle());
        shared_->flights.end();
      }
      ended_.push(reads);
      idle_.push_back(take_at(list, i));
    }
  };
  drop(active_, true);
  drop(paused_, false);
  drop(waiting_, false);
}

nanoseconds HttpChannel::time_to_wait(nanoseconds most) const {
  if (was_refused_) return std::min<nanoseconds>(most, kOthers);  // also where some are due
  if (most.count() <= 0 || paused_.empty()) return most;
  const Clock::time_point now = Clock::now();
  for (const auto& each : paused_) most = std::min(most, std::max(each->due() - now, nanoseconds(0)));
  return most;
}

std::vector<Reply> HttpChannel::ask(std::vector<Request> requests) {
  std::vector<Reply> replies(requests.size());
  std::vector<std::unique_ptr<Transfer>> free = std::move(idle_);  // those of requests before these
  idle_.clear();
  std::size_t begun = 0;
  std::size_t ended = 0;
  while (true) {
    for (const auto& each : idle_) {
      if (each->error()) std::rethrow_exception(each->error());
      replies[each->request().number] = each->reply();
      ++ended;
    }
    if (ended == requests.size()) return replies;
    std::move(idle_.begin(), idle_.end(), std::back_inserter(free));
    idle_.clear();
    for (; begun < requests.size() && begun - ended < shared_->options.connections; ++begun) {
      if (free.empty()) free.push_back(make_transfer());
      requests[begun].number = begun;
      free.back()->take(std::move(requests[begun]));
      paused_.push_back(take_at(free, free.size() - 1));  // due at once
    }
    advance(kLook);
    if (!idle_.empty()) continue;
    if (shared_->options.while_waiting) shared_->options.while_waiting();
  }
}

}  // namespace penstock
