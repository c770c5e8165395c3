// Fiber: a stack of its own on which a function runs, until it hands over to another fiber. One thread runs them all.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace penstock::schedules {

class Fiber {
 public:
  /// The stack that the caller runs on.
  Fiber() = default;
  /// `body` must not return: its last step is a switch_to() of another one. Stacks are recycled.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From this fiber, which is the one that runs, to `other`; returns when somebody switches back.
  void switch_to(Fiber& other);

 private:
  struct Exceptions {  // what C++ keeps for a thread: those that are caught, and how many are on their way
    void* caught = nullptr;
    unsigned uncaught = 0;
  };
  static void begin();
  static void save(Exceptions& kept) noexcept;
  static void restore(const Exceptions& kept) noexcept;
  [[noreturn]] void enter();
  void after_switch() noexcept;

  std::function<void()> body_;
  std::byte* stack_ = nullptr;
  ucontext_t context_{};  // from which it begins
  jmp_buf next_{};        // from which it goes on: without the system call of swapcontext()
  bool has_begun_ = false;
  Exceptions exceptions_;
};

}  // namespace penstock::schedules
