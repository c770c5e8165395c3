#include "core/job/cursor.h"

#include "core/base/error.h"
#include "core/job/order.h"

#include <algorithm>
#include <cassert>
#include <utility>

// The positions that no skip leaves out are numbered 0, 1, 2, …: rank_of(position) counts those before a position,
// select(rank) is the position that has a rank. A segment is what lies between two ends that no batch crosses; in it
// the j-th batch takes the ranks from first + j * G on, so every question has a closed form within a segment, and whole
// epochs without a skip, a change of G or a stage's end are all alike.

namespace penstock {
namespace {

void check_batch_size(std::uint64_t size) {
  if (size == 0) raise(ErrorKind::InvalidArgument, "batch size 0, at least 1 is needed");
  if (size >= kMostPosition) raise(ErrorKind::InvalidArgument, "batch size {} is beyond 2^63", with_commas(size));
}

void check_schedule(const CursorOptions& options) {
  if (options.schedule.empty() || options.schedule.front().first != 0) {
    raise(ErrorKind::InvalidArgument, "the schedule of batch sizes does not begin at position 0");
  }
  for (std::size_t i = 0; i < options.schedule.size(); ++i) {
    const auto [position, size] = options.schedule[i];
    check_batch_size(size);
    if (i > 0 && position <= options.schedule[i - 1].first) {
      raise(ErrorKind::InvalidArgument, "the schedule of batch sizes goes from position {} to {}, it must increase",
            with_commas(options.schedule[i - 1].first), with_commas(position));
    }
  }
}

Epochs epochs_of(const CursorOptions& options) {
  EpochSizes sizes{{0, options.epoch_size}};
  sizes.insert(sizes.end(), options.grown.begin(), options.grown.end());
  return Epochs(sizes);
}

}  // namespace

std::vector<std::pair<std::uint64_t, std::uint64_t>> merge_skips(
    std::vector<std::pair<std::uint64_t, std::uint64_t>> skip) {
  for (const auto& [begin, end] : skip) {
    if (end < begin) {
      raise(ErrorKind::InvalidArgument, "skip ({}, {}) ends before it begins", with_commas(begin), with_commas(end));
    }
  }
  std::sort(skip.begin(), skip.end());
  std::size_t kept = 0;
  for (const auto& range : skip) {
    if (range.first == range.second) continue;
    if (kept > 0 && range.first <= skip[kept - 1].second) {
      skip[kept - 1].second = std::max(skip[kept - 1].second, range.second);
    } else {
      skip[kept++] = range;
    }
  }
  skip.resize(kept);
  return skip;
}

Cursor::Cursor(CursorOptions options)
    : options_(std::move(options)), epochs_(epochs_of(options_)), horizon_(kMostPosition) {
  if (options_.epochs) {
    const std::optional<std::uint64_t> end = epochs_.begin_of(*options_.epochs);
    if (!end) {
      raise(ErrorKind::InvalidArgument, "{} epochs of {} observations are more than 2^63",
            with_commas(*options_.epochs), with_commas(epochs_.size(kMostPosition)));
    }
    horizon_ = *end;
  }
  check_schedule(options_);
  options_.skip = merge_skips(std::move(options_.skip));
  std::uint64_t skipped = 0;
  for (const auto& [begin, end] : options_.skip) {
    skipped_.push_back(skipped);
    skipped += end - begin;
  }
}

void Cursor::check(const Share& share) const {
  if (share.rank >= share.world_size) {
    raise(ErrorKind::InvalidArgument, "rank {} of world size {}, it must be below", with_commas(share.rank),
          with_commas(share.world_size));
  }
  if (share.micro_batches == 0) raise(ErrorKind::InvalidArgument, "micro_batches=0: must be at least 1");
  for (const auto& [position, size] : options_.schedule) {
    if (options_.uneven == Uneven::Refuse) check_divides(size, share);
    check_rows(position, size, batch_rows(size, share));
  }
}

void Cursor::check_rows(std::uint64_t position, std::uint64_t size, std::uint64_t rows) const {
  if (position >= horizon_ || rows < kMostBatchRows) return;
  raise(ErrorKind::InvalidArgument,
        "no memory for a batch of {} rows (a global batch of {} from position {} on): a rank's batch has fewer than "
        "2^31: use a smaller batch size",
        with_commas(rows), with_commas(size), with_commas(position));
}

std::uint64_t Cursor::run_end() const noexcept {
  return options_.epochs ? horizon_ : Order::kNever;
}

std::uint64_t Cursor::batch_size_at(std::uint64_t position) const {
  const auto& schedule = options_.schedule;
  const auto after = std::upper_bound(schedule.begin(), schedule.end(), position,
                                      [](std::uint64_t p, const auto& entry) { return p < entry.first; });
  return std::prev(after)->second;
}

void Cursor::set_batch_size(std::uint64_t position, std::uint64_t size) {
  check_batch_size(size);
  auto& schedule = options_.schedule;
  const auto at = std::lower_bound(schedule.begin(), schedule.end(), position,
                                   [](const auto& entry, std::uint64_t p) { return entry.first < p; });
  if (at != schedule.end() && at->first == position) {
    at->second = size;
  } else {
    schedule.insert(at, {position, size});
  }
}

/// Skips that begin before `position`.
std::size_t Cursor::skips_before(std::uint64_t position) const {
  const auto& skip = options_.skip;
  return static_cast<std::size_t>(std::lower_bound(skip.begin(), skip.end(), position,
                                                   [](const auto& range, std::uint64_t p) { return range.first < p; }) -
                                  skip.begin());
}

/// How many positions before `position` no skip leaves out.
std::uint64_t Cursor::rank_of(std::uint64_t position) const {
  const std::size_t before = skips_before(position);
  if (before == 0) return position;
  const auto& [begin, end] = options_.skip[before - 1];
  return position - skipped_[before - 1] - (std::min(position, end) - begin);
}

/// The position of the `rank`-th (from 0) that no skip leaves out.
std::uint64_t Cursor::select(std::uint64_t rank) const {
  // The last skip that begins at or before it: begin - skipped_ is how many positions are left before a skip.
  std::size_t low = 0;
  std::size_t high = options_.skip.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (options_.skip[middle].first - skipped_[middle] <= rank) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return rank;
  const auto& [begin, end] = options_.skip[low - 1];
  return rank + skipped_[low - 1] + (end - begin);
}

/// The first end after `position` that no batch crosses. `position` lies before the horizon.
std::uint64_t Cursor::segment_end(std::uint64_t position) const {
  std::uint64_t end = horizon_;
  if (options_.per_epoch) {
    end = std::min(end, epochs_.begin(position) + epochs_.size(position));  // both are at most 2^63: the sum fits
  }
  if (options_.stage_end) {
    const std::uint64_t stage = options_.stage_end(position);
    assert(stage > position);
    end = std::min(end, stage);
  }
  return end;
}

/// The first position after `position` where another batch size is scheduled.
std::uint64_t Cursor::next_change(std::uint64_t position) const {
  const auto& schedule = options_.schedule;
  const auto after = std::upper_bound(schedule.begin(), schedule.end(), position,
                                      [](std::uint64_t p, const auto& entry) { return p < entry.first; });
  return after == schedule.end() ? Order::kNever : after->first;
}

/// Batches of `size` that the tail rule makes of the last `observations` of a segment.
std::uint64_t Cursor::batches_in(std::uint64_t observations, std::uint64_t size) const {
  const std::uint64_t whole = observations / size;
  return options_.tail != Tail::Drop && observations % size != 0 ? whole + 1 : whole;
}

/// Batches from `position` to the end of its segment. An endless run's last segment is cut at 2^63, which is no end
/// of a run or an epoch: the tail rule does not apply there, so what is left makes no batch.
std::uint64_t Cursor::batches_left(std::uint64_t position, std::uint64_t end) const {
  const std::uint64_t observations = rank_of(end) - rank_of(position);
  const std::uint64_t size = batch_size_at(position);
  const bool is_cut =
      !options_.epochs && end == horizon_ && (!options_.per_epoch || epochs_.begin(horizon_) != horizon_);
  return is_cut ? observations / size : batches_in(observations, size);
}

/// How many whole epochs from `position` on, ending at or before `to`, are alike, and the batches in each; (0, 0) where
/// epochs are no segments or `position` begins none. Alike: all or nothing skipped, one batch size, no stage's end.
std::pair<std::uint64_t, std::uint64_t> Cursor::equal_epochs(std::uint64_t position, std::uint64_t to) const {
  if (!options_.per_epoch || epochs_.begin(position) != position) return {0, 0};
  const std::uint64_t epoch_size = epochs_.size(position);
  std::uint64_t end = std::min({to, horizon_, next_change(position), epochs_.next_size(position)});
  if (options_.stage_end) end = std::min(end, options_.stage_end(position));
  const std::size_t before = skips_before(position + 1);
  const auto& skip = options_.skip;
  const bool skipped = before > 0 && position < skip[before - 1].second;
  if (skipped) {
    end = std::min(end, skip[before - 1].second);
  } else if (before < skip.size()) {
    end = std::min(end, skip[before].first);
  }
  return {(end - position) / epoch_size, skipped ? 0 : batches_in(epoch_size, batch_size_at(position))};
}

/// The state at which the first batch at or after `position` begins, or the horizon.
std::uint64_t Cursor::begin_of_next(std::uint64_t position) const {
  while (position < horizon_) {
    const std::uint64_t end = segment_end(position);
    if (batches_left(position, end) > 0) return position;
    const auto [epochs, batches] = equal_epochs(position, horizon_);
    position = epochs > 0 ? position + epochs * epochs_.size(position) : end;
    assert(epochs == 0 || batches == 0);
  }
  return horizon_;
}

std::optional<BatchPlan> Cursor::plan(std::uint64_t position, const Share& share) const {
  const std::uint64_t begin = begin_of_next(position);
  if (begin >= horizon_) return std::nullopt;
  std::optional<BatchPlan> result(std::in_place);  // made in place: a plan is not cheap to move
  BatchPlan& plan = *result;
  plan.position = begin;
  const std::uint64_t size = batch_size_at(plan.position);
  const std::uint64_t end = segment_end(plan.position);
  const std::uint64_t first = rank_of(plan.position);
  const std::uint64_t available = rank_of(end) - first;
  const std::uint64_t taken = std::min(size, available);
  plan.rows = batch_rows(options_.tail == Tail::Short ? taken : size, share);
  plan.of_all = taken;
  plan.share = share;
  plan.end = select(first + taken - 1) + 1;
  if (plan.end < end && batches_left(plan.end, end) == 0) plan.end = end;
  add_runs(plan, share, taken);
  return result;
}

BatchPlan Cursor::whole(const BatchPlan& plan) const {
  BatchPlan all;
  all.position = plan.position;
  all.end = plan.end;
  all.rows = all.of_all = plan.of_all;
  add_runs(all, {0, 1}, plan.of_all);
  return all;
}

/// The rank's positions among the `taken` that the batch takes.
void Cursor::add_runs(BatchPlan& plan, const Share& share, std::uint64_t taken) const {
  const std::uint64_t stride = share.world_size;
  const auto& skip = options_.skip;
  std::size_t next_skip = skips_before(plan.position);
  std::uint64_t position = plan.position;
  if (next_skip > 0) position = std::max(position, skip[next_skip - 1].second);
  for (std::uint64_t done = 0; done < taken;) {
    std::uint64_t piece = taken - done;  // positions without a skip between them: number `done` of the batch and on
    if (next_skip < skip.size()) piece = std::min(piece, skip[next_skip].first - position);
    // The first number at or after `done` that is the rank's, as a distance.
    const std::uint64_t lead = (share.rank + stride - done % stride) % stride;
    if (lead < piece) {
      const std::uint64_t count = (piece - lead - 1) / stride + 1;
      plan.runs.push_back({position + lead, stride, count});
      plan.valid += count;
    }
    done += piece;
    if (done < taken) position = skip[next_skip++].second;
  }
}

/// Batches that begin in [from, to) when the job stands at `from`.
Cursor::Counted Cursor::count(std::uint64_t from, std::uint64_t to) const {
  to = std::min(to, horizon_);
  Counted counted;
  while (from < to) {
    if (const auto [epochs, batches] = equal_epochs(from, to); epochs > 0) {
      counted.batches += epochs * batches;
      const std::uint64_t epoch_size = epochs_.size(from);
      const std::uint64_t last_epoch = from + (epochs - 1) * epoch_size;
      if (batches > 0) counted.last = last_epoch + (batches - 1) * batch_size_at(last_epoch);
      from += epochs * epoch_size;
      continue;
    }
    const std::uint64_t end = segment_end(from);
    const std::uint64_t size = batch_size_at(from);
    const std::uint64_t first = rank_of(from);
    const std::uint64_t available = rank_of(end) - first;
    std::uint64_t batches = batches_left(from, end);
    if (batches == 0) {
      from = end;
      continue;
    }
    // The j-th begins after the position that has rank first + j * size - 1: before `bound` if that is before bound
    // - 1.
    const std::uint64_t bound = std::min({to, end, next_change(from)});
    batches = std::min(batches, 1 + (rank_of(bound - 1) - first) / size);
    counted.batches += batches;
    counted.last = batches == 1 ? from : select(first + (batches - 1) * size - 1) + 1;
    // `available` bounds what they take: the last one may be padded.
    const std::uint64_t taken = batches > available / size ? available : batches * size;
    from = select(first + taken - 1) + 1;
  }
  return counted;
}

/// What length() counts.
std::pair<std::uint64_t, std::uint64_t> Cursor::counted_range(std::uint64_t position) const {
  if (options_.per_epoch) {
    if (horizon_ == 0) return {0, 0};
    position = std::min(position, horizon_ - 1);
    return {epochs_.begin(position), epochs_.begin(position) + epochs_.size(position)};
  }
  if (!options_.epochs) raise(ErrorKind::InvalidArgument, "an endless run has no length");
  return {0, horizon_};
}

std::uint64_t Cursor::length(std::uint64_t position) const {
  const auto [from, to] = counted_range(position);
  return count(from, to).batches;
}

std::optional<BatchPlan> Cursor::last(std::uint64_t position, const Share& share) const {
  const auto [from, to] = counted_range(position);
  const Counted counted = count(from, to);
  return counted.batches == 0 ? std::nullopt : plan(counted.last, share);
}

std::uint64_t Cursor::steps_before(std::uint64_t position) const {
  return count(0, position).batches;
}

void Cursor::check_over(std::uint64_t position) const {
  if (options_.epochs) return;
  const std::uint64_t left = kMostPosition - std::min(position, kMostPosition);
  if (options_.per_epoch && left >= epochs_.begin(position) + epochs_.size(position) - position) return;
  raise(ErrorKind::InvalidArgument,
        "position {} of an endless run: there is no whole batch below position 2^63, where positions end; seek() to an "
        "earlier one, or rewind()",
        with_commas(position));
}

}  // namespace penstock
