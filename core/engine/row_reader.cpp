#include "core/engine/row_reader.h"

#include "core/base/error.h"
#include "core/base/sync.h"
#include "core/engine/batch_work.h"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock {
namespace {
constexpr std::size_t kCollect = 64;  // completions taken from a channel at once
}

RowReader::RowReader(Done done, StoreChoice choice, ChannelMode mode, ReadCounters* counters, FileChanges* changes)
    : done_(std::move(done)), lanes_(std::move(choice), mode), counters_(counters), changes_(changes) {}

RowReader::~RowReader() {
  done_ = [](const Ended&) {};
  while (!is_idle()) pump(std::chrono::milliseconds(50));
}

void RowReader::start(const std::shared_ptr<Batch>& batch, std::uint64_t row, Part part) {
  std::unique_ptr<RowFlight> flight;
  if (idle_.empty()) {
    flight = std::make_unique<RowFlight>();
    idle_.reserve(row_flights_ + 1);  // so that finish() cannot fail
    ++row_flights_;
  } else {
    flight = std::move(idle_.back());
    idle_.pop_back();
  }
  flight->batch = batch;
  flight->row = row;
  flight->part = part;
  flight->more = true;
  flight->not_at_hand = false;
  flight->error = nullptr;
  ++flights_under_way_;
  advance(*flight.release());  // finish() takes it back
}

// Plans the next round; false if the row is done (or failed) and nothing is under way.
bool RowReader::plan_round(RowFlight& flight) {
  Batch& batch = *flight.batch;
  Row& row = batch.rows[flight.row];
  if (!flight.more || (flight.part == Part::Measure && row.measured)) return false;
  const BatchFormat& format = (*batch.formats)[batch.picks[flight.row].source];
  flight.reads.clear();
  flight.more = format.source->plan(row, row.round++, format.wanted, flight.reads);
  if (flight.reads.empty()) return true;
  // What can throw comes before anything is under way.
  for (Read& read : flight.reads) {
    read.owner = static_cast<Flight*>(&flight);
    read.cancelled = &batch.cancelled;
    read.budget = &batch.budget;
    Lanes::Lane& lane = lanes_.of(*read.file);
    lane.planned.reserve(lane.planned.size() + flight.reads.size());
  }
  flight.pending = flight.reads.size();
  for (Read& read : flight.reads) plan(read);
  return true;
}

void RowReader::advance(RowFlight& flight) {
  try {
    while (flight.pending == 0 && !flight.error && !flight.not_at_hand && !flight.batch->cancelled) {
      if (!plan_round(flight)) break;
    }
    if (flight.pending > 0) return;
    const bool wanted = !flight.error && !flight.not_at_hand && !flight.batch->cancelled;
    if (wanted && flight.part != Part::Measure) BatchWork(*flight.batch).finish_row(flight.row);
  } catch (...) {
    // A source plans only after it has checked, so what it threw before planning leaves nothing under way.
    flight.error = present_error();
  }
  finish(flight);
}

void RowReader::finish(RowFlight& flight) {
  const std::shared_ptr<Batch> batch = std::move(flight.batch);
  const std::exception_ptr error = std::move(flight.error);
  const std::uint64_t row = flight.row;
  const bool not_at_hand = flight.not_at_hand && !error;
  idle_.emplace_back(&flight);
  --flights_under_way_;
  done_({batch, row, error, not_at_hand});
}

void RowReader::start(RowGroup group) {
  auto flight = std::make_unique<GroupFlight>(std::move(group));
  ++flights_under_way_;
  advance(*flight.release());  // deletes it when all rows have ended
}

void RowReader::advance(GroupFlight& flight) {
  try {
    while (flight.pending == 0) {
      const std::span<Read> pieces = flight.rounds.next(lanes_.choice());
      if (pieces.empty()) break;
      for (Read& piece : pieces) {
        piece.owner = static_cast<Flight*>(&flight);
        Lanes::Lane& lane = lanes_.of(*piece.file);
        lane.planned.reserve(lane.planned.size() + pieces.size());
      }
      flight.pending = pieces.size();
      for (Read& piece : pieces) plan(piece);
    }
    if (flight.pending > 0) return;
  } catch (...) {
    flight.rounds.fail(present_error());  // nothing is under way
  }
  const std::unique_ptr<GroupFlight> ended(&flight);
  --flights_under_way_;
  ended->rounds.group().done();
}

// There is room in the lane's `planned`.
void RowReader::plan(Read& read) noexcept {
  Lanes::Lane& lane = lanes_.of(*read.file);
  lane.planned.push_back(&read);
  if (!read.joined) ++lane.requests;
}

void RowReader::complete(Lanes::Lane& lane, Read& read) {
  if (!read.joined) --lane.requests;
  if (read.outcome == Outcome::Failed && changes_ != nullptr) changes_->note(read.error);
  Flight& flight = *static_cast<Flight*>(read.owner);
  --flight.pending;
  if (flight.is_group) {
    if (flight.pending > 0) return;
    auto& group = static_cast<GroupFlight&>(flight);
    group.rounds.end_round();
    return advance(group);
  }
  auto& row = static_cast<RowFlight&>(flight);
  if (read.outcome == Outcome::Failed && !row.error) row.error = read.error;
  if (read.outcome == Outcome::NotAtHand) row.not_at_hand = true;
  if (row.pending == 0) advance(row);
}

void RowReader::submit(Lanes::Lane& lane) {
  std::vector<Read*> reads;
  reads.swap(lane.planned);
  if (!lane.channel) {
    for (Read* read : reads) {
      read->outcome = Outcome::NotAtHand;
      complete(lane, *read);
    }
  } else {
    lane.under_way += reads.size();
    if (counters_ != nullptr) {
      const auto now = sync::Clock::now();
      for (Read* read : reads) read->submitted = now;
    }
    try {
      lane.channel->submit(reads);
    } catch (...) {
      const std::exception_ptr error = present_error();
      lane.under_way -= reads.size();
      for (Read* read : reads) {
        read->fail(error);
        complete(lane, *read);
      }
    }
  }
  reads.clear();
  if (lane.planned.empty()) lane.planned.swap(reads);  // keeps the capacity
}

std::size_t RowReader::collect(Lanes::Lane& lane, std::chrono::nanoseconds patience) {
  std::array<Read*, kCollect> done;
  const std::size_t count = lane.channel->wait(done, patience);
  lane.under_way -= count;
  if (counters_ != nullptr && count > 0) {
    const auto now = sync::Clock::now();
    for (std::size_t i = 0; i < count; ++i) counters_->ended(*done[i], now - done[i]->submitted);
  }
  for (std::size_t i = 0; i < count; ++i) complete(lane, *done[i]);
  return count;
}

void RowReader::pump(std::chrono::nanoseconds patience) {
  const bool was_busy = is_busy();
  bool progress = true;
  while (progress && !is_idle()) {
    progress = false;
    std::size_t waiting = 0;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      Lanes::Lane& lane = lanes_[i];
      if (!lane.planned.empty()) {
        submit(lane);
        progress = true;
      }
      if (lane.under_way > 0 && collect(lane, std::chrono::nanoseconds(0)) > 0) progress = true;
      waiting += lane.under_way > 0 ? 1 : 0;
    }
    if (progress) continue;
    if (was_busy && !is_busy()) return;  // what ended made room for more reads
    // Only with reads at one store can its channel be waited on for long; with several, each gets a turn.
    const auto turn =
        waiting > 1 ? std::min<std::chrono::nanoseconds>(patience, std::chrono::milliseconds(1)) : patience;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (lanes_[i].under_way > 0 && turn.count() > 0) collect(lanes_[i], turn);
    }
    return;
  }
}

}  // namespace penstock
