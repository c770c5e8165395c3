#include "bindings/asked_blocks.h"

#include "core/base/error.h"
#include "core/base/fork_count.h"
#include "core/job/pick_wait.h"
#include "shuffle/epoch_run.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

namespace penstock::bindings {
namespace {

using shuffle::Asked;
using shuffle::IndexBlock;

constexpr std::chrono::milliseconds kBlockLook{20};  // between two looks of who waits, at signals and cancelling

}  // namespace

AskedBlocks::AskedBlocks(AskedFunction function, Compute compute)
    : function_(std::move(function)), compute_(std::move(compute)), forks_(fork_count()) {
  shuffle::check_order_size("custom", function_.length);
}

std::shared_ptr<AskedBlocks> AskedBlocks::make(AskedFunction function, Compute compute) {
  // A child after a fork cannot destroy what threads of its parent wait for.
  return {new AskedBlocks(std::move(function), std::move(compute)), [](AskedBlocks* blocks) {
            if (blocks->forks_ == fork_count()) delete blocks;
          }};
}

std::string AskedBlocks::words_of(const Request& call) const {
  return fmt::format("{}: epoch {}, positions {} to {}", function_.words, with_commas(call.epoch),
                     with_commas(call.first), with_commas(call.first + call.count - 1));
}

// --- those who ask

IndexBlock AskedBlocks::find(std::uint32_t epoch, std::uint64_t number) {
  if (forks_ != fork_count()) return nullptr;
  const std::lock_guard lock(mutex_);
  return find_kept(epoch, number);
}

IndexBlock AskedBlocks::get(std::uint32_t epoch, std::uint64_t number, const std::function<void()>& while_waiting) {
  if (forks_ != fork_count()) {
    if (!compute_) {
      raise(
          ErrorKind::InvalidArgument,
          "{}: its function is called by a thread that a child has not after a fork: make the loader or the job here, "
          "or start processes by spawn",
          function_.words);
    }
    const std::uint64_t first = number * Asked::kBlock;
    return std::make_shared<const std::vector<std::uint64_t>>(
        computed({epoch, number, first, Asked::positions_in(function_.length, number)}));
  }
  Call call;
  std::unique_lock lock(mutex_);
  if (IndexBlock kept = find_kept(epoch, number)) return kept;
  if (answers_ == std::this_thread::get_id()) {
    raise(ErrorKind::InvalidArgument, "{}: its function asks for the order that it is", function_.words);
  }
  call = find_open(epoch, number);
  const bool computes = !call && compute_;
  if (!call) call = open(epoch, number);
  if (computes) {
    call->is_taken = true;
    lock.unlock();
    try {
      end(call, std::make_shared<const std::vector<std::uint64_t>>(computed(*call)), nullptr);
    } catch (...) {
      fail(call, present_error());
    }
    lock.lock();
  } else {
    wait_for(*call, lock, while_waiting);
  }
  if (call->error) std::rethrow_exception(call->error);
  ask_ahead(epoch, number);
  return call->block;
}

void AskedBlocks::wait_for(Request& call, std::unique_lock<std::mutex>& lock,
                           const std::function<void()>& while_waiting) {
  struct Waits {
    Waits(AskedBlocks& blocks_, Request& call_, std::unique_lock<std::mutex>& lock_)
        : blocks(blocks_), call(call_), lock(lock_) {
      if (call.waiting++ == 0) blocks.work_.notify_one();
    }
    ~Waits() {
      if (!lock.owns_lock()) lock.lock();
      if (--call.waiting == 0 && !call.is_taken) blocks.leave(blocks.find_open(call.epoch, call.number));
    }
    Waits(const Waits&) = delete;
    Waits& operator=(const Waits&) = delete;
    AskedBlocks& blocks;
    Request& call;
    std::unique_lock<std::mutex>& lock;
  } const waits(*this, call, lock);
  while (!call.has_ended) {
    answered_.wait_for(lock, kBlockLook);
    if (call.has_ended) return;
    if (is_stopped_) raise(ErrorKind::InvalidArgument, "{}: its function is called no more", function_.words);
    if (PicksWanted::are_cancelled()) throw PicksCancelled();
    if (!while_waiting) continue;
    lock.unlock();
    while_waiting();
    lock.lock();
  }
}

// With the mutex, as all below that say nothing else: nobody waits for it, and no thread has it.
void AskedBlocks::leave(const Call& call) {
  std::erase(queue_, call);
  std::erase(open_, call);
}

IndexBlock AskedBlocks::find_kept(std::uint32_t epoch, std::uint64_t number) {
  const auto at = std::find_if(kept_.begin(), kept_.end(),
                               [&](const Kept& kept) { return kept.epoch == epoch && kept.number == number; });
  if (at == kept_.end()) return nullptr;
  std::rotate(at, at + 1, kept_.end());
  ask_ahead(epoch, number);
  return kept_.back().block;
}

AskedBlocks::Call AskedBlocks::find_open(std::uint32_t epoch, std::uint64_t number) const {
  const auto at = std::find_if(open_.begin(), open_.end(),
                               [&](const Call& call) { return call->epoch == epoch && call->number == number; });
  return at == open_.end() ? nullptr : *at;
}

AskedBlocks::Call AskedBlocks::open(std::uint32_t epoch, std::uint64_t number) {
  const std::uint64_t first = number * Asked::kBlock;
  auto call = std::make_shared<Request>(Request{epoch, number, first, Asked::positions_in(function_.length, number)});
  open_.push_back(call);
  if (!compute_) queue_.push_back(call);
  return call;
}

void AskedBlocks::note_end(std::uint64_t epochs) {
  if (forks_ != fork_count()) return;
  const std::lock_guard lock(mutex_);
  epochs_ = std::max(epochs_.value_or(0), epochs);
}

// The next one, once a block is used; after the epoch's last the next epoch's first, if the run has that.
void AskedBlocks::ask_ahead(std::uint32_t epoch, std::uint64_t number) {
  if (compute_) return;
  std::uint64_t next = number + 1;
  if (next > (function_.length - 1) / Asked::kBlock) {
    if (epoch == UINT32_MAX || (epochs_ && epoch + 1 >= *epochs_)) return;
    ++epoch;
    next = 0;
  }
  if (is_known(epoch, next) || failed_ahead_ == std::pair(epoch, next)) return;
  open(epoch, next);
  work_.notify_one();
}

bool AskedBlocks::is_known(std::uint32_t epoch, std::uint64_t number) const {
  const auto is_it = [&](const Kept& kept) { return kept.epoch == epoch && kept.number == number; };
  return std::any_of(kept_.begin(), kept_.end(), is_it) || find_open(epoch, number);
}

// Without the mutex, as check().
std::vector<std::uint64_t> AskedBlocks::computed(const Request& call) const {
  std::vector<std::uint64_t> indices(call.count);
  compute_(call.epoch, call.first, indices);
  check(call, indices);
  return indices;
}

void AskedBlocks::check(const Request& call, std::span<const std::uint64_t> indices) const {
  std::uint64_t largest = 0;
  for (const std::uint64_t each : indices) largest = std::max(largest, each);
  if (largest < function_.observations) return;
  const auto at = std::find_if(indices.begin(), indices.end(),
                               [this](std::uint64_t index) { return index >= function_.observations; });
  raise(ErrorKind::InvalidArgument, "{}: epoch {}, position {}: index {}, and there are {} observations",
        function_.words, with_commas(call.epoch),
        with_commas(call.first + static_cast<std::uint64_t>(at - indices.begin())), with_commas(*at),
        with_commas(function_.observations));
}

// --- the thread that answers

AskedBlocks::Call AskedBlocks::take() {
  std::unique_lock lock(mutex_);
  answers_ = std::this_thread::get_id();
  work_.wait(lock, [this] { return is_stopped_ || !queue_.empty(); });
  if (is_stopped_) return nullptr;
  const auto at = std::min_element(queue_.begin(), queue_.end(), [](const Call& a, const Call& b) {
    return std::tuple(a->waiting == 0, a->epoch, a->number) < std::tuple(b->waiting == 0, b->epoch, b->number);
  });
  Call call = *at;
  queue_.erase(at);
  call->is_taken = true;
  return call;
}

void AskedBlocks::give(const Call& call, std::vector<std::uint64_t> indices) {
  try {
    if (indices.size() != call->count) {
      raise(ErrorKind::InvalidArgument, "{}: {} indices for {} positions", words_of(*call), with_commas(indices.size()),
            with_commas(call->count));
    }
    check(*call, indices);
    end(call, std::make_shared<const std::vector<std::uint64_t>>(std::move(indices)), nullptr);
  } catch (...) {
    end(call, nullptr, present_error());
  }
}

void AskedBlocks::fail(const Call& call, const std::exception_ptr& error) {
  end(call, nullptr, error);
}

// Takes the mutex.
void AskedBlocks::end(const Call& call, IndexBlock block, const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);
  if (call->has_ended) return;
  if (block) {
    if (kept_.size() == kKept) kept_.erase(kept_.begin());
    kept_.push_back({call->epoch, call->number, block});
  }
  std::erase(open_, call);
  if (error && call->waiting == 0) failed_ahead_ = {call->epoch, call->number};
  call->block = std::move(block);
  call->error = error;
  call->has_ended = true;
  answered_.notify_all();
}

void AskedBlocks::stop() noexcept {
  if (forks_ != fork_count()) return;
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  work_.notify_all();
  answered_.notify_all();
}

}  // namespace penstock::bindings
