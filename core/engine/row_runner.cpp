#include "core/engine/row_runner.h"

#include <array>

namespace penstock {
namespace {
constexpr std::size_t kCollect = 64;  // completions taken from a channel at once
}

RowRunner::RowRunner(Done done, StoreChoice through, ChannelMode mode)
    : done_(std::move(done)), through_(std::move(through)), mode_(mode) {}

RowRunner::~RowRunner() {
  done_ = [](const std::shared_ptr<Batch>&, std::uint64_t, Outcome, const std::exception_ptr&) {};
  while (in_flight_ > 0) pump(std::chrono::milliseconds(50));
}

RowRunner::Lane& RowRunner::lane_of(ByteStore& files) {
  for (const auto& lane : lanes_) {
    if (lane->files == &files) return *lane;
  }
  auto lane = std::make_unique<Lane>();
  lane->files = &files;
  lane->channel = choose_store(through_, files).open_channel(mode_);
  const std::lock_guard lock(lanes_mutex_);
  return *lanes_.emplace_back(std::move(lane));
}

void RowRunner::start(const std::shared_ptr<Batch>& batch, std::uint64_t row, Part part) {
  std::unique_ptr<Flight> flight;
  if (idle_.empty()) {
    flight = std::make_unique<Flight>();
    idle_.reserve(++flights_);  // so that finish() cannot fail
  } else {
    flight = std::move(idle_.back());
    idle_.pop_back();
  }
  flight->batch = batch;
  flight->row = row;
  flight->part = part;
  flight->more = true;
  flight->missed = false;
  flight->error = nullptr;
  ++in_flight_;
  flight->batch->rows[row].flight = flight.get();
  advance(*flight.release());  // finish() takes it back
}

// Plans the next stage; false if the row is done (or failed) and nothing is under way.
bool RowRunner::plan_stage(Flight& flight) {
  Batch& batch = *flight.batch;
  Row& row = batch.rows[flight.row];
  if (!flight.more || (flight.part == Part::Measure && row.measured)) return false;
  const BatchFormat& format = batch.row_format(flight.row);
  flight.reads.clear();
  flight.more = format.source->plan(row, row.round++, format.wanted, flight.reads);
  if (flight.reads.empty()) return true;
  for (const Read& read : flight.reads) {  // what can throw comes before anything is under way
    Lane& lane = lane_of(*read.file->store);
    lane.planned.reserve(lane.planned.size() + flight.reads.size());
  }
  flight.pending = flight.reads.size();
  for (Read& read : flight.reads) {
    read.owner = &row;
    read.cancelled = &batch.cancelled;
    lane_of(*read.file->store).planned.push_back(&read);
  }
  return true;
}

void RowRunner::advance(Flight& flight) {
  try {
    while (flight.pending == 0 && !flight.missed && !flight.error && !flight.batch->cancelled) {
      if (!plan_stage(flight)) break;
    }
    if (flight.pending > 0) return;
    const bool wanted =
        !flight.missed && !flight.error && !flight.batch->cancelled;  // nobody asks for a cancelled batch any more
    if (wanted && flight.part != Part::Measure) flight.batch->finish_row(flight.row);
  } catch (...) {
    // A source plans only after it has checked, so what it threw before planning leaves nothing under way.
    flight.error = std::current_exception();
  }
  finish(flight);
}

void RowRunner::finish(Flight& flight) {
  const std::shared_ptr<Batch> batch = std::move(flight.batch);
  const std::exception_ptr error = std::move(flight.error);
  const std::uint64_t row = flight.row;
  const Outcome outcome = flight.missed ? Outcome::NotAtHand : error ? Outcome::Failed : Outcome::Done;
  batch->rows[row].flight = nullptr;
  idle_.emplace_back(&flight);
  --in_flight_;
  done_(batch, row, outcome, error);
}

void RowRunner::complete(Read& read) {
  Flight& flight = *static_cast<Flight*>(static_cast<Row*>(read.owner)->flight);
  if (read.outcome == Outcome::NotAtHand) flight.missed = true;
  if (read.outcome == Outcome::Failed && !flight.error) flight.error = read.error;
  if (--flight.pending == 0) advance(flight);
}

void RowRunner::submit(Lane& lane) {
  std::vector<Read*> reads;
  reads.swap(lane.planned);
  if (lane.channel == nullptr) {
    for (Read* read : reads) {
      read->outcome = Outcome::NotAtHand;
      complete(*read);
    }
    return;
  }
  lane.under_way += reads.size();
  try {
    lane.channel->submit(reads);
  } catch (...) {
    lane.under_way -= reads.size();
    for (Read* read : reads) {
      read->fail(std::current_exception());
      complete(*read);
    }
  }
  reads.clear();
  if (lane.planned.empty()) lane.planned.swap(reads);  // keeps the capacity
}

std::size_t RowRunner::collect(Lane& lane, std::chrono::nanoseconds patience) {
  std::array<Read*, kCollect> done;
  const std::size_t count = lane.channel->wait(done, patience);
  lane.under_way -= count;
  for (std::size_t i = 0; i < count; ++i) complete(*done[i]);
  return count;
}

void RowRunner::pump(std::chrono::nanoseconds patience) {
  bool progress = true;
  while (progress && in_flight_ > 0) {
    progress = false;
    std::size_t waiting = 0;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {  // not by iterators: rows that go on may need another lane
      Lane& lane = *lanes_[i];
      if (!lane.planned.empty()) submit(lane);
      waiting += lane.under_way > 0 ? 1 : 0;
    }
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      Lane& lane = *lanes_[i];
      if (lane.under_way > 0 && collect(lane, std::chrono::nanoseconds(0)) > 0) progress = true;
    }
    if (progress) continue;
    // Only with reads at one store can its channel be waited on for long; with several, each gets a turn.
    const auto turn =
        waiting > 1 ? std::min<std::chrono::nanoseconds>(patience, std::chrono::milliseconds(1)) : patience;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      Lane& lane = *lanes_[i];
      if (lane.under_way > 0 && turn.count() > 0) collect(lane, turn);
    }
    return;
  }
}

void RowRunner::wake() {
  const std::lock_guard lock(lanes_mutex_);
  for (const auto& lane : lanes_) {
    if (lane->channel) lane->channel->wake();
  }
}

}  // namespace penstock
