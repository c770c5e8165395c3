#include "core/engine/fetch.h"

#include "core/base/align.h"
#include "core/engine/row_memory.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace penstock {
namespace {

// A part ends at a gap between its rows once it has kLeastRows rows or kLeastBytes: enough to keep a ring busy, and few
// enough for all threads to have a part.
constexpr std::size_t kLeastRows = 64;
constexpr std::uint64_t kLeastBytes = 1U << 20;
// Among neighbours it ends at kMostRows or kMostBytes.
constexpr std::size_t kMostRows = 1024;
constexpr std::uint64_t kMostBytes = 8U << 20;
// A larger request is not faster.
constexpr std::uint64_t kEnoughBytes = 1U << 20;
// Stretches are planned ahead of all batches until they have kAheadBytes: at least one, at most kMostAhead.
constexpr std::uint64_t kAheadBytes = 4U << 20;
constexpr std::size_t kMostAhead = 8;

std::uint64_t stored_records(const BatchFormat& format, std::uint64_t length) {
  return format.shape.lead + length + format.shape.tail;
}

}  // namespace

Stretch::Stretch(std::uint64_t begin, std::shared_ptr<MemoryBound> bound, std::shared_ptr<SpareParts> spares)
    : begin_(begin), bound_(std::move(bound)), spares_(std::move(spares)) {}

Stretch::~Stretch() {
  for (auto& part : parts) spares_->give(std::move(part));
  bound_->remove_fetched(bytes_);
}

void Stretch::add(std::uint64_t position, const Pick& pick, std::uint64_t bytes) {
  members_.push_back({pick, positions_.size(), bytes});
  positions_.push_back(position);
  estimate_ += bytes;
}

void Stretch::account(FetchPart& part) {
  const std::uint64_t bytes = part.held_bytes();
  bound_->note_row(part.used_bytes() / part.rows.size());
  bound_->add_fetched(bytes);
  bound_->remove_fetched(part.counted_bytes);
  bytes_ += bytes;
  bytes_ -= part.counted_bytes;
  part.counted_bytes = bytes;
}

void Stretch::close(std::uint64_t end, const BatchFormats& formats) {
  end_ = end;
  bound_->add_fetched(estimate_);
  bytes_ = estimate_;
  const auto lies_before = [](const Member& a, const Member& b) {
    return std::tie(a.pick.source, a.pick.fetch, a.pick.index, a.slot) <
           std::tie(b.pick.source, b.pick.fetch, b.pick.index, b.slot);
  };
  if (!std::is_sorted(members_.begin(), members_.end(), lies_before)) {
    std::sort(members_.begin(), members_.end(), lies_before);
  }
  rows_.resize(positions_.size());
  std::size_t first = 0;
  while (first < members_.size()) {
    const Pick& begin = members_[first].pick;
    const BatchFormat& format = formats[begin.source];
    const std::uint64_t row_bytes = stored_records(format, format.shape.length) * format.stored_record_bytes + 1;
    std::size_t last = first + 1;
    for (; last < members_.size(); ++last) {
      const Pick& pick = members_[last].pick;
      if (std::tie(pick.source, pick.fetch) != std::tie(begin.source, begin.fetch)) break;
      const std::size_t rows = last - first;
      const bool is_neighbour = pick.index - members_[last - 1].pick.index <= 1;
      if (!is_neighbour && (rows >= kLeastRows || rows >= kLeastBytes / row_bytes)) break;
      if (rows >= kMostRows || (rows >= kLeastRows && rows >= kMostBytes / row_bytes)) break;
    }
    std::unique_ptr<FetchPart> part = spares_->take(last - first);
    part->format = &format;
    part->most_bytes = bound_->most_by_file();
    bind_arenas(part->rows, part->most_bytes, part->bound);
    for (std::size_t i = first; i < last; ++i) part->counted_bytes += members_[i].bytes;
    for (std::size_t i = first; i < last; ++i) {
      Row& row = part->rows[i - first];
      row.restart(members_[i].pick.index, format.shape.length);
      row.epoch = members_[i].pick.epoch;
      row.slice = format.read_slice();
      row.records = nullptr;
      rows_[members_[i].slot] = &row;
    }
    parts.push_back(std::move(part));
    first = last;
  }
  members_ = {};
}

Row& Stretch::row(std::uint64_t position) {
  if (next_slot_ >= positions_.size() || positions_[next_slot_] != position) {
    const auto at = std::lower_bound(positions_.begin(), positions_.end(), position);
    next_slot_ = static_cast<std::size_t>(at - positions_.begin());
  }
  return *rows_[next_slot_++];
}

FetchPlanner::FetchPlanner(std::shared_ptr<const BatchFormats> formats, std::shared_ptr<const RowChoice> rows,
                           std::shared_ptr<BatchPool> pool, std::shared_ptr<MemoryBound> bound)
    : formats_(std::move(formats)),
      rows_(std::move(rows)),
      pool_(std::move(pool)),
      bound_(std::move(bound)),
      spares_(std::make_shared<SpareParts>(bound_)) {}

void FetchPlanner::restart(std::shared_ptr<const Job> job, std::uint64_t position) {
  stop();
  *interrupted_ = false;
  job_ = std::move(job);
  planned_to_ = position;
  batch_ = job_->plan(position, rows_->share());
}

void FetchPlanner::stop() {
  for (const auto& stretch : stretches_) stretch->cancelled = true;
  stretches_.clear();
  chosen_.clear();
  batch_.reset();
}

// Without costs nothing is kept: to choose again is faster than to look it up.
ChosenRows& FetchPlanner::chosen(const BatchPlan& plan, ChosenRows& scratch) {
  auto at = chosen_.begin();
  if (rows_->may_wait()) {
    at = std::lower_bound(chosen_.begin(), chosen_.end(), plan.position,
                          [](const ChosenRows& rows, std::uint64_t position) { return rows.position < position; });
    if (at != chosen_.end() && at->position == plan.position) return *at;
  }
  scratch.position = plan.position;
  scratch.end = plan.end;
  rows_->choose(*job_, plan, scratch.positions, scratch.picks, *interrupted_);
  return rows_->may_wait() ? *chosen_.insert(at, std::move(scratch)) : scratch;
}

// Passes over batches up to `position` that have no row of this rank, if they are the next to be planned: it may have
// none in a whole run, where there are more ranks than rows.
void FetchPlanner::pass_empty(std::uint64_t position) {
  while (batch_ && batch_->valid == 0 && batch_->position <= position) {
    planned_to_ = std::max(planned_to_, batch_->end);
    batch_ = job_->plan(batch_->end, rows_->share());
  }
}

void FetchPlanner::choose(Batch& batch) {
  if (batch.plan.valid == 0) {
    batch.positions.clear();
    batch.picks.clear();
    return;
  }
  ChosenRows scratch;
  ChosenRows& rows = chosen(batch.plan, scratch);
  batch.positions = rows.positions;
  batch.picks = rows.picks;
  rows.given = true;
  forget_chosen();
}

void FetchPlanner::forget_chosen() {
  while (!chosen_.empty() && chosen_.front().given && chosen_.front().end <= planned_to_) chosen_.pop_front();
}

// What a row takes: the mean of what the dataset has, until rows have been read.
std::uint64_t FetchPlanner::row_bytes(const Pick& pick) const {
  const BatchFormat& format = (*formats_)[pick.source];
  const SourceInfo& info = format.source->info();
  const std::uint64_t length = format.shape.ragged ? info.mean_length : format.shape.length;
  std::uint64_t bytes = sizeof(Row) + align_up(stored_records(format, length) * format.stored_record_bytes, kCacheLine);
  // A window has the entries of all documents that it meets: the mean, and as much again for those that go on.
  if (has(format.wanted, Parts::Entries)) bytes += 2 * info.mean_entry_bytes;
  return std::max(bytes, bound_->largest_row());
}

// Rows of a batch; null: they are not to be had, and the stretch may end before them. The batch itself fails with the
// error, if it comes again.
const ChosenRows* FetchPlanner::chosen_if_any(const BatchPlan& batch, bool may_end, ChosenRows& scratch) {
  if (*interrupted_) throw CostsCancelled();
  try {
    return &chosen(batch, scratch);
  } catch (...) {
    if (!may_end) throw;
    return nullptr;
  }
}

// Adds rows by their positions, those of `rows` from `begin` to `end`.
void FetchPlanner::add_rows(Filling& filling, const ChosenRows& rows, std::uint64_t begin, std::uint64_t end) const {
  const std::vector<std::uint64_t>& positions = rows.positions;
  std::vector<std::size_t>& rising = filling.rising;
  rising.resize(positions.size());
  std::iota(rising.begin(), rising.end(), std::size_t{0});
  const auto is_earlier = [&](std::size_t a, std::size_t b) { return positions[a] < positions[b]; };
  if (!std::is_sorted(positions.begin(), positions.end())) std::sort(rising.begin(), rising.end(), is_earlier);
  for (const std::size_t number : rising) {
    const std::uint64_t position = positions[number];
    if (position < begin || position >= end) continue;
    const Pick& pick = rows.picks[number];
    const Pick& last = filling.last;
    filling.is_rising &= filling.stretch.row_count() == 0 || (pick.source == last.source && pick.index > last.index);
    filling.last = pick;
    filling.stretch.add(position, pick, row_bytes(pick));
  }
}

// Rows up to `end`, which becomes lower where the stretch is to end before. False: they do not fit, and may not be cut.
bool FetchPlanner::fill(Stretch& stretch, std::optional<BatchPlan>& batch, std::uint64_t& end, const Room& room) {
  const std::uint64_t begin = stretch.begin();
  ChosenRows scratch;
  Filling filling{stretch};
  for (; batch && batch->position < end; batch = job_->plan(batch->end, rows_->share())) {
    if (batch->valid == 0) {  // and perhaps none after it, to the end of the run
      end = batch->position;
      break;
    }
    const bool may_end = room.may_cut && batch->position > room.needed;
    const bool is_enough = filling.is_rising && stretch.estimated_bytes() >= kEnoughBytes;
    const ChosenRows* const rows = is_enough ? nullptr : chosen_if_any(*batch, may_end, scratch);
    const bool is_full = rows != nullptr && stretch.row_count() > 0 && stretch.estimated_bytes() > room.bytes;
    if (is_full && !room.may_cut) return false;
    if (rows == nullptr || (is_full && may_end)) {
      end = batch->position;
      break;
    }
    add_rows(filling, *rows, begin, end);
    if (batch->end > end) break;  // the rest of it is of the next stretch
  }
  return room.may_cut || stretch.estimated_bytes() <= room.bytes;
}

// The rows from planned_to_ to the end of the fetches that are open there; fewer where they exceed the room and the
// position that is needed has been passed, and where they lie in the order of their positions (sequential): what is
// large enough for one request gains nothing from more. Where they may not be cut it is all of them or none.
std::shared_ptr<Stretch> FetchPlanner::plan(const Room& room) {
  pass_empty(room.needed);
  if (!batch_ || batch_->valid == 0) return nullptr;
  const std::uint64_t begin = std::max(planned_to_, batch_->position);
  std::uint64_t end = job_->order().fetch_end(begin);
  if (end < batch_->end) end = job_->order().fetch_end(batch_->end - 1);  // fetches of one row: a batch of them
  auto stretch = std::make_shared<Stretch>(begin, bound_, spares_);
  std::optional<BatchPlan> batch = batch_;
  if (!fill(*stretch, batch, end, room)) return nullptr;
  stretch->close(end, *formats_);
  // Its parts have taken spares, which are counted as its own once they are placed.
  if (bound_->needs_spares(pool_->usage().bytes, 0)) drop_spares();
  stretches_.push_back(stretch);  // may throw: its positions are then still to be planned
  planned_to_ = end;
  batch_ = std::move(batch);
  forget_chosen();
  return stretch;
}

const std::shared_ptr<Stretch>& FetchPlanner::find(std::uint64_t position) const {
  return *std::find_if(stretches_.begin(), stretches_.end(),
                       [&](const auto& stretch) { return stretch->begin() <= position && position < stretch->end(); });
}

void FetchPlanner::give_rows(Batch& batch, std::vector<std::shared_ptr<Stretch>>& planned) {
  batch.fetched.clear();
  batch.fetches.clear();
  if (batch.positions.empty()) pass_empty(batch.plan.position);
  bool begins = false;  // to take rows of a stretch
  for (const std::uint64_t position : batch.positions) {
    while (position >= planned_to_ && batch_) {
      planned.reserve(planned.size() + 1);  // what is planned must be queued
      const std::uint64_t budget = bound_->left_for_fetches(pool_->usage().bytes);
      if (auto stretch = plan({budget, true, position})) planned.push_back(std::move(stretch));
    }
    const std::shared_ptr<Stretch>& stretch = find(position);
    batch.fetched.push_back(&stretch->row(position));
    begins |= stretch->given++ == 0;
    if (batch.fetches.empty() || batch.fetches.back() != stretch) batch.fetches.push_back(stretch);
  }
  std::erase_if(stretches_, [](const auto& stretch) { return stretch->given == stretch->row_count(); });
  if (!begins || !planned.empty()) return;  // what was planned just now is to be read first
  try {
    planned.reserve(kMostAhead);
    while (auto ahead = plan_ahead()) planned.push_back(std::move(ahead));
  } catch (...) {  // the batch that needs it plans it again, and fails with the error
  }
}

std::shared_ptr<Stretch> FetchPlanner::plan_ahead() {
  if (!batch_) return nullptr;
  std::size_t ahead = 0;
  std::uint64_t bytes = 0;
  for (const auto& stretch : stretches_) {
    if (stretch->given > 0) continue;
    ++ahead;
    bytes += stretch->bytes();
  }
  if (ahead >= kMostAhead || (ahead > 0 && bytes >= kAheadBytes)) return nullptr;
  return plan({bound_->left_for_fetches(pool_->usage().bytes), false, 0});
}

}  // namespace penstock
