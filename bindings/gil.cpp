#include "bindings/gil.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace penstock::bindings {
namespace {

std::atomic<bool> exiting{false};  // set with the GIL, after exiting_thread
std::thread::id exiting_thread;    // that may take the GIL all the same
thread_local std::atomic<bool>* tell_parked = nullptr;
std::atomic<unsigned> threads_returning{0};  // that found no exit under way, and take the GIL

// A forked child has none of those threads, and its end is another one.
[[maybe_unused]] const int kForkHandler = pthread_atfork(nullptr, nullptr, [] {
  threads_returning = 0;
  exiting = false;
});

bool exits_elsewhere() noexcept {
  return exiting && std::this_thread::get_id() != exiting_thread;
}

void take_gil(PyThreadState* state) {
  ++threads_returning;
  if (exits_elsewhere()) {
    --threads_returning;
    stay_for_ever();
  }
  PyEval_RestoreThread(state);
  --threads_returning;
}

}  // namespace

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {}

Unlocked::~Unlocked() {
  take_gil(state_);
}

Unlocked::Locked::Locked(Unlocked& unlocked) : unlocked_(unlocked) {
  take_gil(unlocked_.state_);
}

Unlocked::Locked::~Locked() {
  unlocked_.state_ = PyEval_SaveThread();
}

void begin_exit() {
  // A sub-interpreter's end is not the process's.
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) return;
  exiting_thread = std::this_thread::get_id();
  exiting = true;
  const Unlocked released;
  while (threads_returning > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void stay_if_exiting() noexcept {
  if (!exits_elsewhere()) return;
  static_cast<void>(PyEval_SaveThread());
  stay_for_ever();
}

TellsParking::TellsParking(std::atomic<bool>& parked) noexcept : outer_(std::exchange(tell_parked, &parked)) {}
TellsParking::~TellsParking() {
  tell_parked = outer_;
}

void stay_for_ever() noexcept {
  if (tell_parked != nullptr) *tell_parked = true;
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

bool has_gil() noexcept {
  PyThreadState* const mine = PyGILState_GetThisThreadState();
  return mine != nullptr && mine == pybind11::detail::get_thread_state_unchecked();
}

void look_for_signals() {
  if (::syscall(SYS_gettid) != ::getpid()) return;  // glibc 2.28 has no gettid()
  const PyGILState_STATE state = PyGILState_Ensure();
  std::optional<pybind11::error_already_set> raised;
  if (PyErr_CheckSignals() != 0) raised.emplace();
  PyGILState_Release(state);
  if (raised) throw pybind11::error_already_set(*raised);
}

}  // namespace penstock::bindings
