#include "core/engine/wakeups.h"

#include <algorithm>

namespace penstock {
namespace {

using namespace std::chrono_literals;

// Read times vary: the longest of many is several times their mean.
constexpr std::int64_t kMargin = 3;
// A consumer that is away for longer is at work of its own: it may be asleep, and its core free. A shorter time is what
// a loop without work takes between two batches.
constexpr auto kAway = 200us;
// Between two batches lies a pause, not a step: what was measured says nothing about what follows.
constexpr auto kPause = 1s;
// So much work is worth a claim, which costs a fraction of a microsecond.
constexpr auto kClaim = 100us;
constexpr std::uint64_t kMostAClaim = 16;
constexpr std::int64_t kMean = 8;  // of so many
// Nothing takes longer, as far as decisions go: sums and products of such times do not overflow.
constexpr Wakeups::Duration kLongest = 24h;

Wakeups::Duration mean(Wakeups::Duration before, Wakeups::Duration now) {
  return before.count() == 0 ? now : (before * (kMean - 1) + now) / kMean;
}

}  // namespace

void Wakeups::batch_taken(Time now) {
  const Duration since = now - took_at_;
  took_at_ = now;
  pace_ = since > kPause ? Duration(0) : std::max(mean(pace_, since), Duration(1));
}

void Wakeups::rows_read(std::uint64_t rows, std::uint64_t batch_rows, Duration busy) {
  if (rows == 0) return;
  const auto row_ns = static_cast<std::uint64_t>(std::clamp(busy, Duration(0), kLongest).count()) / rows;
  const Duration row(std::max<std::uint64_t>(row_ns, 1));
  const bool is_long = batch_rows > static_cast<std::uint64_t>(kLongest / row);
  row_ = mean(row_, row);
  read_ = mean(read_, is_long ? kLongest : row * static_cast<std::int64_t>(batch_rows));
}

void Wakeups::consumer_leaves(Time now) {
  waits_ = false;
  read_lately_ = reads_;
  if (reads_) left_at_ = now;
}

unsigned Wakeups::beside_consumer() const noexcept {
  return threads_ < cores_ ? threads_ : std::max(cores_, 2U) - 1;
}

unsigned Wakeups::most_awake(Time now) const {
  if (threads_ < cores_ || !(waits_ ? reads_ : read_lately_)) return threads_;
  if (!waits_ && now - left_at_ > kAway) return threads_;
  return beside_consumer();
}

unsigned Wakeups::threads_wanted(Time now) const {
  const unsigned most = most_awake(now);
  if (waits_ || !knows_both()) return most;
  const std::int64_t wanted = (kMargin * read_ + pace_ - Duration(1)) / pace_;
  return static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, most));
}

std::size_t Wakeups::low_water(std::size_t planned) const {
  if (planned == 0) return 0;
  const std::size_t most = planned - 1;  // one is about to be read in any case
  if (waits_ || !knows_both()) return most;
  const auto taken = static_cast<std::size_t>((kMargin * read_ + pace_ - Duration(1)) / pace_);
  return std::min(taken, most);
}

std::uint64_t Wakeups::rows_a_claim(std::uint64_t rows, unsigned shares) const {
  const std::uint64_t share = std::min((rows + shares - 1) / shares, kMostAClaim);
  if (row_.count() == 0) return share;
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(kClaim / row_), 1, std::max<std::uint64_t>(share, 1));
}

}  // namespace penstock
