// Read: one planned read of a file, and how it ended.
//
// The engine owns a Read from plan to completion; between submit() and wait() it belongs to the channel's thread.
#pragma once

#include "core/io/file.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

namespace penstock {

class RetryBudget;

enum class Outcome : std::uint8_t {
  Done,       // the bytes are at their destination; or the read was cancelled
  Failed,     // `error` says why
  NotAtHand,  // a non-blocking channel would have had to wait, or to open the file
};

/// `size` bytes of `file` from `offset` into `destination`. The planner sets the first four, the engine the next
/// five, the channel the rest.
struct Read {
  const File* file = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::byte* destination = nullptr;
  void* owner = nullptr;                                 // what the read is for
  const std::atomic<bool>* cancelled = nullptr;          // true: the bytes are no longer wanted and need not be read
  RetryBudget* budget = nullptr;                         // of the operation that it is for; outlives it
  std::chrono::steady_clock::time_point submitted = {};  // where reads are counted
  Outcome outcome = Outcome::Done;
  bool joined = false;        // planned as one request with the read before it, which it continues
  std::uint32_t retries = 0;  // how often it was cut short or interrupted, or failed, and was tried again
  std::exception_ptr error;   // of a read that failed

  void fail(std::exception_ptr why) noexcept {
    outcome = Outcome::Failed;
    error = std::move(why);
  }
};

}  // namespace penstock
