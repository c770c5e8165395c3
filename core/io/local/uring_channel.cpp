#include "core/io/local/uring_channel.h"

#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace penstock {
namespace {

// After this many misses in a row the page cache is tried only now and then: the ring finds out by itself, too.
constexpr std::uint64_t kPatientMisses = 16;
constexpr std::uint64_t kTryEvery = 32;
// Buffers of direct reads are beside what a loader's max_bytes counts, so there are few of them.
constexpr std::uint64_t kMostDirectBytes = 4 << 20;

}  // namespace

UringChannel::UringChannel(std::shared_ptr<ProcessFdCache> files, bool direct)
    : files_(std::move(files)), direct_(direct), ring_(kDepth) {
  for (unsigned i = 0; i < kDepth; ++i) idle_.push_back(std::make_unique<Operation>());
}

UringChannel::~UringChannel() {
  while (ring_.under_way() > 0) collect(std::chrono::milliseconds(100));  // the kernel writes into batches
}

void UringChannel::submit(std::span<Read* const> reads) {
  ended_.reserve(reads_under_way_ + queue_.size() + reads.size());  // so that nothing can throw where reads end
  queue_.push(reads);
}

std::size_t UringChannel::wait(std::span<Read*> done, std::chrono::nanoseconds timeout) {
  if (ended_.empty() && ring_.under_way() > 0) collect(std::chrono::nanoseconds(0));
  while (goes_on(done.size()) && !ring_.full() && begin_next()) {
  }
  if (queue_.empty()) files_.let_go();
  if (ended_.empty() && ring_.under_way() > 0) collect(timeout);
  return hand_out(done);
}

// Whether the next read is begun before any that ended is handed out: none has, or the last one has the same owner.
bool UringChannel::goes_on(std::size_t most) const {
  if (queue_.empty() || ended_.empty()) return !queue_.empty();
  return ended_.size() < most && ended_.front().back()->owner == queue_.front().front()->owner;
}

std::size_t UringChannel::hand_out(std::span<Read*> done) {
  const std::span<Read* const> ended = ended_.front();
  const std::size_t count = std::min(done.size(), ended.size());
  std::copy_n(ended.begin(), count, done.begin());
  ended_.pop(count);
  return count;
}

// The next run: to its end if it need not wait for the device, else into the ring. False if it must wait for another
// one to end first.
bool UringChannel::begin_next() {
  const std::span<Read* const> run = queue_.front().first(run_length(queue_.front()));
  const std::size_t under_way = ring_.under_way();
  if (!ReadQueue::are_cancelled(run)) {
    try {
      if (!begin(run)) return false;
    } catch (...) {
      fail_all(run);
    }
  }
  if (ring_.under_way() == under_way) ended_.push(run);
  queue_.pop(run.size());
  return true;
}

// Null if there is no descriptor for it now.
const FdPin* UringChannel::hold(const File& file) {
  if (ring_.under_way() > 0 && files_.is_short()) return nullptr;  // one at a time
  try {
    return &files_.hold(file, ring_.under_way() == 0);
  } catch (const Error& error) {
    if (ChannelFiles::lacks_room(error) && ring_.under_way() > 0)
      return nullptr;  // reads under way will give theirs back
    throw;
  }
}

// False if there is no room for it now.
bool UringChannel::begin(std::span<Read* const> run) {
  const FdPin* const pin = hold(*run.front()->file);
  if (pin == nullptr || !has_room(*pin, run)) return false;
  std::uint64_t got = 0;
  if (direct_ && (ring_.broken() || !is_inside(run) || run_bytes(run) > kMaxRunBytes)) {
    read_each_direct(idle_.back()->direct, pin->fd(), run);
  } else if (!direct_ && (ring_.broken() || !is_inside(run))) {
    read_each(pin->fd(), run);
  } else {
    if (!direct_) got = read_from_cache(pin->fd(), run);
    if (got < run_bytes(run)) enqueue(files_.take(*run.front()->file), run, got);
  }
  return true;
}

// Bytes from the run's front on that are at their destinations now.
std::uint64_t UringChannel::read_from_cache(int fd, std::span<Read* const> run) {
  if (misses_ >= kPatientMisses && ++misses_ % kTryEvery != 0) return 0;
  const std::uint64_t got = read_cached(fd, run);
  misses_ = got == run_bytes(run) ? 0 : misses_ + 1;
  return got;
}

// Descriptors beyond the cache's bound, and memory beyond the buffers', are for one read at a time.
bool UringChannel::has_room(const FdPin& pin, std::span<Read* const> run) const {
  if (ring_.under_way() == 0) return true;
  return pin.cached() && (!direct_ || bytes_under_way_ + run_bytes(run) <= kMostDirectBytes);
}

void UringChannel::enqueue(FdPin pin, std::span<Read* const> run, std::uint64_t got) {
  Operation& operation = *idle_.back();          // there is one: the ring is not full
  operation.run.assign(run.begin(), run.end());  // may throw, as plan() may: nothing is under way yet
  const int fd = pin.fd();
  if (direct_) {
    operation.direct.plan(run);
    operation.pin.emplace(std::move(pin));
    ring_.read(fd, std::span(&operation.direct.piece(), 1), operation.direct.offset(), &operation);
  } else {
    const std::size_t count = fill_pieces(run, got, operation.pieces);
    operation.expected = run_bytes(run) - got;
    operation.pin.emplace(std::move(pin));
    ring_.read(fd, std::span(operation.pieces).first(count), run.front()->offset + got, &operation);
  }
  reads_under_way_ += run.size();
  bytes_under_way_ += run_bytes(run);
  static_cast<void>(idle_.back().release());  // complete() takes it back
  idle_.pop_back();
}

void UringChannel::complete(const Ring::Completion& completion) {
  std::unique_ptr<Operation> operation(static_cast<Operation*>(completion.tag));
  const std::span<Read* const> run(operation->run);
  if (direct_) {
    try {
      operation->direct.finish(operation->pin->fd(), run, completion.result);
    } catch (...) {
      read_each_direct(operation->direct, operation->pin->fd(), run);
    }
  } else if (completion.result < 0 || static_cast<std::uint64_t>(completion.result) != operation->expected) {
    read_each(operation->pin->fd(), run);
  }
  operation->pin.reset();
  reads_under_way_ -= run.size();
  bytes_under_way_ -= run_bytes(run);
  ended_.push(run);
  idle_.push_back(std::move(operation));
}

// One by one, since an error belongs to the reads that it hit alone, and long ones in parts.
void UringChannel::read_each_direct(DirectRead& direct, int fd, std::span<Read* const> run) {
  for (Read* read : run) {
    try {
      check_range(*read);
      Read part = *read;
      Read* const each = &part;
      for (std::uint64_t done = 0; done < read->size; done += part.size) {
        part.offset = read->offset + done;
        part.destination = read->destination + done;
        part.size = std::min(read->size - done, kMaxRunBytes);
        direct.plan(std::span(&each, 1));
        direct.finish(fd, std::span(&each, 1), 0);
      }
    } catch (...) {
      read->fail(present_error());
    }
  }
}

void UringChannel::collect(std::chrono::nanoseconds patience) {
  std::array<Ring::Completion, 16> completions;
  const std::size_t count = ring_.collect(completions, patience);
  for (std::size_t i = 0; i < count; ++i) complete(completions[i]);
}

}  // namespace penstock
