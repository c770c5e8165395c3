// Crew: which of an engine's threads are awake.
//
// Waking a thread costs more than all else that a batch needs, for who wakes as for who is woken, and so does a core
// that two threads share. So nobody is woken who need not be: a thread only for work that those awake have not taken;
// while the consumer itself helps, only as many are awake as have a core besides it; and where the consumer takes
// batches at an even pace, one thread sets itself an alarm instead of being called.
//
// All but notify(): with the engine's mutex held.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace penstock {

class Crew {
 public:
  /// Of `threads` threads, all of them awake at first, where the process may use `cores`.
  Crew(unsigned threads, unsigned cores) : threads_(threads), cores_(cores) {}

  /// The calling thread sleeps until one is called or the crew is dismissed. With `batches`, one thread sleeps only for
  /// as long as the consumer takes for so many.
  void sleep(std::unique_lock<std::mutex>& lock, std::size_t batches);
  /// One more thread, if one sleeps and may be woken. True: notify() when the mutex is let go.
  bool call();
  /// Whether a thread is awake or will soon be by itself.
  [[nodiscard]] bool is_on_watch() const noexcept { return alarm_ || awake() > 0; }
  void notify() { called_.notify_one(); }
  /// No thread sleeps any more.
  void dismiss();
  [[nodiscard]] bool dismissed() const noexcept { return dismissed_; }
  [[nodiscard]] bool all_asleep() const noexcept { return asleep_ == threads_ && woken_ == 0; }
  /// Whether the calling thread should sleep, work or not: it shares a core with the consumer that helps.
  [[nodiscard]] bool is_crowded() const { return awake() > most_awake(); }

  /// How many threads may be awake: all, but while the consumer helps only as many as have a core besides it.
  [[nodiscard]] unsigned most_awake() const;
  [[nodiscard]] unsigned beside_consumer() const noexcept;

  /// What the consumer does: it takes work itself, it sleeps, it is at work of its own.
  void consumer_helps() { helps_ = inside_ = true; }
  void consumer_sleeps() { helps_ = false; }
  void consumer_leaves();
  void consumer_takes();  // a batch
  void found_work() noexcept { in_vain_ = 0; }

 private:
  [[nodiscard]] unsigned awake() const noexcept { return threads_ - asleep_ + woken_; }

  const unsigned threads_;
  const unsigned cores_;
  std::condition_variable called_;  // a sleeping thread was called, or all are dismissed
  unsigned asleep_ = 0;             // threads in sleep() …
  unsigned woken_ = 0;              // … and how many of them are on their way
  bool dismissed_ = false;
  bool helps_ = false;   // the consumer had work to do when it last waited …
  bool inside_ = false;  // … and still waits; else since when not:
  std::chrono::steady_clock::time_point left_at_;
  std::chrono::steady_clock::time_point took_at_;
  std::chrono::nanoseconds pace_{0};  // between two batches, the mean of the last few; 0: unknown
  bool alarm_ = false;                // a thread sleeps with one
  unsigned in_vain_ = 0;              // alarms in a row after which there was nothing to do
};

}  // namespace penstock
