#include "core/io/local/run_channel.h"

#include "core/io/local/file_reads.h"

#include <algorithm>
#include <utility>

namespace penstock {

std::size_t RunChannel::wait(std::span<Read*> done, std::chrono::nanoseconds /*timeout*/) {
  if (fresh_ > 0) prepare(queue_.front().last(std::exchange(fresh_, 0)));
  while (ended_ < done.size() && queue_.continues(ended_)) {
    const std::span<Read* const> left = queue_.front().subspan(ended_);
    const std::span<Read* const> run = left.first(run_length(left));
    ended_ += run.size();
    try {
      if (!ReadQueue::are_cancelled(run)) read_run(run);
    } catch (...) {
      fail_all(run);
    }
  }
  const std::size_t count = std::min(done.size(), ended_);
  std::copy_n(queue_.front().begin(), count, done.begin());
  queue_.pop(count);
  ended_ -= count;
  if (queue_.empty()) files_.let_go();
  return count;
}

}  // namespace penstock
