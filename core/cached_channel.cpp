#include "core/cached_channel.h"

#include "core/file_reads.h"

#include <algorithm>

namespace penstock {
namespace {
struct NotCached {};
}  // namespace

const std::exception_ptr& not_cached() {
  static const std::exception_ptr error = std::make_exception_ptr(NotCached());
  return error;
}

std::unique_ptr<Channel> ByteStore::open_cached_channel() {
  return std::make_unique<CachedChannel>();
}

std::size_t CachedChannel::wait(std::span<Read*> done, std::chrono::nanoseconds /*timeout*/) {
  if (ended_ == 0 && !queue_.empty()) {
    const std::span<Read* const> run = queue_.front().first(run_length(queue_.front()));
    if (!read_cached(run)) {
      for (Read* read : run) read->error = not_cached();
    }
    ended_ = run.size();
  }
  const std::size_t count = std::min(done.size(), ended_);
  std::copy_n(queue_.front().begin(), count, done.begin());
  queue_.pop(count);
  ended_ -= count;
  if (files_ && queue_.empty()) files_->let_go();
  return count;
}

// What is wrong with a file or a range is found, and told, by who reads it in earnest.
bool CachedChannel::read_cached(std::span<Read* const> run) {
  if (!files_ || !is_inside(run)) return false;
  const FdPin* pin = files_->hold_open(*run.front()->file);
  if (pin == nullptr) return false;
  Pieces pieces;
  const std::size_t count = fill_pieces(run, 0, pieces);
  const ssize_t got =
      ::preadv2(pin->fd(), pieces.data(), static_cast<int>(count), static_cast<off_t>(run.front()->offset), RWF_NOWAIT);
  return got >= 0 && static_cast<std::uint64_t>(got) == run_bytes(run);
}

}  // namespace penstock
