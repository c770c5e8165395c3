#include "tests/native/schedules/scheduler.h"

#include "tests/native/schedules/virtual_sync.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace penstock::schedules {

Scheduler* Scheduler::present_ = nullptr;

void Scheduler::run(std::function<void()> main) {
  present_ = this;
  Thread& consumer = spawn("consumer", std::move(main));
  self_ = &consumer;
  root_.switch_to(*consumer.fiber);
  present_ = nullptr;
}

void Scheduler::fail(const std::string& why) {
  failure_ = why;
  note("FAILS: " + why);
  self_->fiber->switch_to(root_);
  std::terminate();  // nobody comes back
}

Thread& Scheduler::spawn(std::string name, std::function<void()> body) {
  Thread& thread = *threads_.emplace_back(std::make_unique<Thread>());
  thread.id = static_cast<int>(threads_.size()) - 1;
  thread.name = std::move(name);
  thread.body = std::move(body);
  thread.step = {Step::Kind::Begin, &thread};
  thread.fiber = std::make_unique<Fiber>([this, &thread] {
    try {
      thread.body();
    } catch (const std::exception& error) {
      fail(thread.name + " ends by an exception: " + error.what());
    } catch (...) {
      fail(thread.name + " ends by an exception");
    }
    end_thread();
  });
  return thread;
}

void Scheduler::end_thread() {
  self_->has_ended = true;
  self_->body = nullptr;
  if (++ended_ == threads_.size()) {
    self_->fiber->switch_to(root_);
  } else {
    go_on();
  }
  std::terminate();
}

void Scheduler::join(const Thread& thread) {
  step(Step::Kind::Join, &thread);
}

void Scheduler::step(Step::Kind kind, const void* object) {
  self_->step = {kind, object};
  go_on();
}

bool Scheduler::wait(Step::Kind kind, const void* object, Nanoseconds until) {
  Thread& waiting = *self_;
  waiting.until = options_.is_timeless ? kForever : until;
  waiting.is_late = false;
  step(kind, object);
  waiting.until = kForever;
  if (waiting.is_late && !waiting.is_ready) choices_.yielded(waiting.id);
  return waiting.is_ready;
}

void Scheduler::sleep(Nanoseconds time) {
  self_->until = now_ + time;
  choices_.yielded(self_->id);
  step(Step::Kind::Sleep, nullptr);
  self_->until = kForever;
}

void Scheduler::add(Pending& pending) {
  events_.push_back({next_event_++, &pending});
}

// Hands over to who is next, perhaps the caller.
void Scheduler::go_on() {
  Thread& before = *self_;
  Thread& chosen = next();
  self_ = &chosen;
  if (&chosen != &before) before.fiber->switch_to(*chosen.fiber);
}

bool Scheduler::is_enabled(const Thread& thread) const {
  if (thread.has_ended) return false;
  switch (thread.step.kind) {
    case Step::Kind::Lock: return static_cast<const sync::Mutex*>(thread.step.object)->is_free();
    case Step::Kind::Wait:
    case Step::Kind::Collect: return thread.is_ready || thread.is_late;
    case Step::Kind::Join: return static_cast<const Thread*>(thread.step.object)->has_ended;
    case Step::Kind::Sleep: return thread.is_late;
    default: return true;
  }
}

void Scheduler::list_turns() {
  turns_.clear();
  for (const auto& thread : threads_) {
    if (thread->until <= now_) thread->is_late = true;
    if (is_enabled(*thread)) turns_.push_back({thread->id, thread->step, thread.get() == self_});
  }
  const bool rests = turns_.empty();
  if (rests && at_rest) at_rest();
  for (const Event& event : events_)
    turns_.push_back({event.id, {Step::Kind::Complete, event.pending->object()}, false});
  if (turns_.empty() || (!options_.is_timeless && choices_.time_may_pass())) let_time_pass();
}

// To the earliest time that somebody waits for. Where nothing else is left it must be one who sleeps: all others would
// have been woken, or wait for what never comes.
void Scheduler::let_time_pass() {
  Thread* first = nullptr;
  bool sleeps = false;
  for (const auto& thread : threads_) {
    if (thread->has_ended || is_enabled(*thread)) continue;
    sleeps |= thread->step.kind == Step::Kind::Sleep;
    if (thread->until != kForever && (first == nullptr || thread->until < first->until)) first = thread.get();
  }
  if (turns_.empty() && !sleeps) {
    std::string why = "nobody can go on:";
    for (const auto& thread : threads_) {
      if (!thread->has_ended) why += " " + thread->name + " " + word_of(thread->step.kind) + ";";
    }
    fail(why);
  }
  if (first == nullptr) return;
  now_ = std::max(now_, first->until);
  first->is_late = true;
  if (turns_.empty() || first->step.kind == Step::Kind::Sleep || !options_.is_timeless) {
    turns_.insert(turns_.begin(), {first->id, first->step, first == self_});
    std::sort(turns_.begin(), turns_.end(), [](const Turn& a, const Turn& b) { return a.id < b.id; });
  }
}

Thread& Scheduler::next() {
  while (true) {
    if (++steps_ > options_.most_steps) fail("it does not end");
    list_turns();
    const Turn turn = turns_[choices_.turn(turns_)];
    now_ += options_.step_time;
    if (turn.id >= kStorage) {
      end_read(turn.id);
      continue;
    }
    Thread& chosen = *threads_[static_cast<std::size_t>(turn.id)];
    if (options_.traces) record(chosen.name, turn.step);
    return chosen;
  }
}

void Scheduler::end_read(int id) {
  const auto at = std::find_if(events_.begin(), events_.end(), [id](const Event& event) { return event.id == id; });
  Pending& pending = *at->pending;
  if (options_.traces) record("storage", {Step::Kind::Complete, pending.object()});
  events_.erase(at);
  pending.end();
  if (at_read) at_read();
}

void Scheduler::note(const std::string& text) {
  if (options_.traces) trace_.push_back("    " + (self_ != nullptr ? self_->name + ": " : std::string()) + text);
}

std::string Scheduler::name_of(const void* object) {
  if (object == nullptr) return "";
  for (const auto& thread : threads_) {
    if (thread.get() == object) return thread->name;
  }
  const auto at = std::find(objects_.begin(), objects_.end(), object);
  const auto number = at - objects_.begin();
  if (at == objects_.end()) objects_.push_back(object);
  return "#" + std::to_string(number);
}

void Scheduler::record(const std::string& who, const Step& step) {
  trace_.push_back(std::to_string(steps_) + " " + who + " " + word_of(step.kind) + " " + name_of(step.object));
}

}  // namespace penstock::schedules
