// Compiled without exceptions: pthread_cleanup_push() is then the form that jumps, and no destructor.
#include "bindings/unwound_thread.h"

#include <pthread.h>

#ifdef __EXCEPTIONS
#error "bindings/unwound_thread.cpp wants -fno-exceptions"
#endif

namespace penstock::bindings {

void call_or_stay(void (*call)(void*), void* argument, void (*stay)(void*)) {
  pthread_cleanup_push(stay, nullptr);
  call(argument);
  pthread_cleanup_pop(0);
}

}  // namespace penstock::bindings
