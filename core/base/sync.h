// The engine's threads, locks, shared values and time, by names of ours: the seam at which a test decides how threads
// take turns and how time goes (tests/native/schedules). Everywhere else they are the standard library's.
#pragma once

#ifdef PENSTOCK_SYNC
#include PENSTOCK_SYNC
#else

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace penstock::sync {

template <typename T>
using Atomic = std::atomic<T>;
using Mutex = std::mutex;
using Condition = std::condition_variable;
using Thread = std::thread;
using Clock = std::chrono::steady_clock;
using std::this_thread::sleep_for;

}  // namespace penstock::sync

#endif
