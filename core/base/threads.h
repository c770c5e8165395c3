// What threads of ours need of the system.
#pragma once

#include <signal.h>

namespace penstock {

/// While one lives, the calling thread and threads that it starts get no signals: those are for the threads that the
/// embedding program made. Python handles them on its main thread.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace penstock
