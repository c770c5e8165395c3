// Unlocked: the calling thread goes on without the GIL, and takes it again unless Python is being taken down.
//
// When the interpreter ends, Python up to 3.13 ends a thread that asks for the GIL by unwinding it (pthread_exit),
// which goes through frames that may not be unwound: the process aborts. So once the end has begun, a thread other than
// the one that ends Python stays where it asks, until the process is gone; Python itself has it so from 3.14 on.
// Everything that lets go of the GIL does it by this type, and everything that calls back into Python by from_python().
#pragma once

#include "bindings/unwound_thread.h"

#include <pybind11/pybind11.h>

#include <atomic>

namespace penstock::bindings {

class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  /// With the GIL again, for as long as it lives.
  class Locked {
   public:
    explicit Locked(Unlocked& unlocked);
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    Unlocked& unlocked_;
  };

 private:
  PyThreadState* state_;
};

/// The end of the interpreter has begun. Returns when no other thread is about to take the GIL. Call with the GIL, on
/// the thread that ends it.
void begin_exit();
/// Sleeps until the process is gone.
[[noreturn]] void stay_for_ever() noexcept;
/// Lets go of the GIL and stays, if the end has begun and this is another thread than that which ends Python. Call with
/// the GIL, before anything is touched that is taken down then.
void stay_if_exiting() noexcept;

/// While it lives, `parked` is set when the calling thread stays for ever: it touches nothing any more.
class TellsParking {
 public:
  explicit TellsParking(std::atomic<bool>& parked) noexcept;
  ~TellsParking();
  TellsParking(const TellsParking&) = delete;
  TellsParking& operator=(const TellsParking&) = delete;

 private:
  std::atomic<bool>* const outer_;
};

/// Whether this thread has the GIL. PyGILState_Check() answers yes, always, once there was a sub-interpreter.
[[nodiscard]] bool has_gil() noexcept;

/// Runs handlers of signals, if this is the process's first thread, the only one that has any; it has let go of the
/// GIL. Other threads do not wait for Python, whose end would unwind them. Throws what a handler raises.
void look_for_signals();

/// What `call` gives: a call of Python's C interface that may run Python's code or let go of the GIL, and returns a new
/// reference. Where the end of the interpreter unwinds it, the thread stays for ever, so that no destructor of an
/// object runs without the GIL; therefore `call` may have none itself, and throws nothing.
template <typename Call>
pybind11::object from_python(const Call& call) {
  struct Made {
    const Call& call;
    PyObject* result;
  } made{call, nullptr};
  const auto make = [](void* argument) {
    Made& into = *static_cast<Made*>(argument);
    into.result = into.call();
  };
  call_or_stay(make, &made, [](void*) { stay_for_ever(); });
  PyObject* const result = made.result;
  if (result == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(result);
}

}  // namespace penstock::bindings
