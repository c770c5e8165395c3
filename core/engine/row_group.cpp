#include "core/engine/row_group.h"

#include "core/base/error.h"

#include <algorithm>
#include <utility>

namespace penstock {

GroupRounds::GroupRounds(RowGroup group)
    : group_(std::move(group)), placed_(!group_.format->shape.ragged), progress_(group_.rows.size()) {
  for (Row& row : group_.rows) row.group = group_.rows.data();
}

std::span<Read> GroupRounds::next(const StoreChoice& choice) {
  reads_.clear();
  while (reads_.empty()) {
    if (group_.cancelled != nullptr && *group_.cancelled) return {};
    if (!plan_rows() && reads_.empty()) return {};
  }
  sorted_.clear();
  for (Read& read : reads_) sorted_.push_back(&read);
  ByteStore& store = choose_store(choice, *reads_.front().file->store());
  extents_.plan(sorted_, {.near_bytes = group_.format->slice ? 0 : store.near_bytes(),
                          .block_bytes = store.block_bytes(),
                          .most_bytes = store.most_bytes(),
                          .most_unwanted = store.most_unwanted()});
  return extents_.pieces();
}

// One round of each row that has not ended; false if there is none.
bool GroupRounds::plan_rows() {
  bool any_open = false;
  bool any_planned = false;
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    if (!is_open(i)) continue;
    any_open = true;
    Row& row = group_.rows[i];
    if (!placed_ && row.measured) continue;  // waits for the lengths of the others
    any_planned = true;
    Reads planned;
    bool more = true;
    try {
      more = group_.format->source->plan(row, row.round++, group_.format->wanted, planned);
    } catch (...) {
      row.error = present_error();
      continue;
    }
    for (Read& read : planned) {
      if (read.size == 0) continue;
      read.owner = &row;
      read.cancelled = group_.cancelled;
      read.budget = group_.budget;
      reads_.push_back(read);
    }
    progress_[i].more = more;
  }
  if (any_open && !any_planned) place();
  return any_open;
}

void GroupRounds::place() {
  placed_ = true;
  try {
    group_.place();
  } catch (...) {
    fail(present_error());
  }
}

void GroupRounds::fail(const std::exception_ptr& error) noexcept {
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    if (is_open(i)) group_.rows[i].error = error;
  }
  for (const Read& read : reads_) {
    Row& row = *static_cast<Row*>(read.owner);
    if (!row.error) row.error = error;
  }
}

void GroupRounds::end_round() {
  extents_.complete();
  for (const Read& read : reads_) {
    Row& row = *static_cast<Row*>(read.owner);
    if (read.outcome == Outcome::Failed && !row.error) row.error = read.error;
  }
  reads_.clear();
}

}  // namespace penstock
