// Crew: which of an engine's threads are awake.
//
// Waking a thread costs more than all else that a batch needs, for who wakes as for who is woken, and so does a core
// that two threads share. So nobody is woken who need not be: a thread only for work that those awake have not taken;
// and while the consumer itself helps, only as many are awake as have a core besides it.
//
// All but notify(): with the engine's mutex held.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace penstock {

class Crew {
 public:
  /// Of `threads` threads, all of them awake at first, where the process may use `cores`.
  Crew(unsigned threads, unsigned cores) : threads_(threads), cores_(cores) {}

  /// The calling thread sleeps until one is called or the crew is dismissed.
  void sleep(std::unique_lock<std::mutex>& lock);
  /// One more thread, if one sleeps and may be woken. True: notify() when the mutex is let go.
  bool call();
  void notify() { called_.notify_one(); }
  /// No thread sleeps any more.
  void dismiss();
  [[nodiscard]] bool dismissed() const noexcept { return dismissed_; }
  [[nodiscard]] bool all_asleep() const noexcept { return asleep_ == threads_ && woken_ == 0; }
  /// Whether the calling thread should sleep, work or not: it shares a core with the consumer that helps.
  [[nodiscard]] bool is_crowded() const { return awake() > most_awake(); }

  /// What the consumer does: it takes work itself, it sleeps, it is at work of its own.
  void consumer_helps() { helps_ = inside_ = true; }
  void consumer_sleeps() { helps_ = false; }
  void consumer_leaves();

 private:
  [[nodiscard]] unsigned awake() const noexcept { return threads_ - asleep_ + woken_; }
  [[nodiscard]] unsigned most_awake() const;

  const unsigned threads_;
  const unsigned cores_;
  std::condition_variable called_;  // a sleeping thread was called, or all are dismissed
  unsigned asleep_ = 0;             // threads in sleep() …
  unsigned woken_ = 0;              // … and how many of them are on their way
  bool dismissed_ = false;
  bool helps_ = false;   // the consumer had work to do when it last waited …
  bool inside_ = false;  // … and still waits; else since when not:
  std::chrono::steady_clock::time_point left_at_;
};

}  // namespace penstock
