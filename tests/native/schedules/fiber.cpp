#include "tests/native/schedules/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace penstock::schedules {
namespace {

constexpr std::size_t kStackBytes = 256 << 10;
constexpr std::size_t kGuardBytes = 4096;

std::vector<std::byte*>& idle_stacks() {
  static std::vector<std::byte*> stacks;
  return stacks;
}

std::byte* take_stack() {
  std::vector<std::byte*>& idle = idle_stacks();
  if (!idle.empty()) {
    std::byte* const stack = idle.back();
    idle.pop_back();
    return stack;
  }
  void* const mapped =
      ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  ::mprotect(mapped, kGuardBytes, PROT_NONE);
  return static_cast<std::byte*>(mapped);
}

Fiber* entered = nullptr;  // by the last switch

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
  static const ucontext_t model = [] {
    ucontext_t context;
    ::getcontext(&context);
    return context;
  }();
  context_ = model;
#if defined(__x86_64__)
  context_.uc_mcontext.fpregs = &context_.__fpregs_mem;  // the model's pointer is into the model
#endif
  context_.uc_stack.ss_sp = stack_ + kGuardBytes;
  context_.uc_stack.ss_size = kStackBytes - kGuardBytes;
  context_.uc_link = nullptr;
  ::makecontext(&context_, &Fiber::begin, 0);
}

Fiber::~Fiber() {
  if (stack_ == nullptr) return;
  idle_stacks().push_back(stack_);
}

void Fiber::begin() {
  Fiber& self = *entered;
  self.after_switch();
  self.body_();
}

// Of the C++ ABI for Itanium, 2.2.2: __cxa_eh_globals.
void Fiber::save(Exceptions& kept) noexcept {
  std::memcpy(static_cast<void*>(&kept), static_cast<void*>(abi::__cxa_get_globals()), sizeof kept);
}

void Fiber::restore(const Exceptions& kept) noexcept {
  std::memcpy(static_cast<void*>(abi::__cxa_get_globals()), static_cast<const void*>(&kept), sizeof kept);
}

void Fiber::after_switch() noexcept {
  restore(exceptions_);
}

void Fiber::enter() {
  if (!has_begun_ && stack_ != nullptr) {
    has_begun_ = true;
    ::setcontext(&context_);
  }
  ::_longjmp(next_, 1);
}

// No local variable: _setjmp() returns twice.
void Fiber::switch_to(Fiber& other) {
  save(exceptions_);
  entered = &other;
  if (::_setjmp(next_) == 0) other.enter();
  after_switch();
}

}  // namespace penstock::schedules
