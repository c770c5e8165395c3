// call_or_stay: a call that Python may end by unwinding the thread, as pthread_exit() does.
//
// glibc unwinds by libgcc_s. A frame of a library that brings an unwinder of its own, as a wheel with a static libc++
// does, may not be unwound so, nor can `catch` see it: that wants abi::__forced_unwind, which only libstdc++ has. So
// the frames between the call and its caller stay as they are: glibc jumps to a handler of pthread_cleanup_push().
#pragma once

namespace penstock::bindings {

/// Calls `call(argument)`. Where pthread_exit() ends the thread in there, calls `stay(nullptr)` instead of unwinding
/// the callers; it may not return. `call` has no destructors and throws nothing.
void call_or_stay(void (*call)(void*), void* argument, void (*stay)(void*));

}  // namespace penstock::bindings
