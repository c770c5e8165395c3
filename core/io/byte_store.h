// ByteStore and Channel: the seam to where bytes live (local files here; object stores and Python collections later).
//
// A ByteStore knows how to reach files; any thread may ask it for a Channel. A Channel is owned by one thread, which
// submits reads and collects those that ended, in any order. Nothing blocks that thread but wait().
#pragma once

#include "core/io/file.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>

namespace penstock {

struct Row;

/// One planned read, filled in by Source::plan: `size` bytes of `file` from `offset` into `destination`. The engine
/// owns it from plan to completion; a channel sets `error` if it failed. `file` stays at its address as long as its
/// source lives.
struct Read {
  const File* file = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::byte* destination = nullptr;
  Row* row = nullptr;                            // set by the engine
  const std::atomic<bool>* cancelled = nullptr;  // set by the engine: nobody wants it any more, it need not be read
  std::exception_ptr error;                      // set by the channel
};

/// Ways to read local files. Auto: a ring of io_uring where the kernel and the container allow one, else pread.
/// Direct: a ring that bypasses the page cache. Mmap: files are mapped; an error of the device is a signal.
enum class Reader { Auto, Pread, Uring, Direct, Mmap };

/// The error of a read whose bytes are not at hand, by a channel that does not wait; the same object always, so it can
/// be told by comparing.
const std::exception_ptr& not_cached();

class Channel {
 public:
  virtual ~Channel() = default;
  /// Takes the reads; each stays untouched by others until wait() returns it. May complete some of them at once. Throws
  /// only if it took none of them.
  virtual void submit(std::span<Read* const> reads) = 0;
  /// Up to done.size() reads that ended; returns how many. Waits for at most `timeout` for the first of them. Returns 0
  /// on timeout, wake() or when nothing is under way.
  virtual std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) = 0;
  /// Makes a wait() of another thread return. Any thread.
  virtual void wake() = 0;
};

class ByteStore {
 public:
  virtual ~ByteStore() = default;
  /// A new channel for the calling thread's use. Any thread. Throws InvalidArgument if this machine refuses `reader`. A
  /// store that has but one way to read takes any.
  virtual std::unique_ptr<Channel> open_channel(Reader reader) = 0;
  /// A new channel that leaves what it would have to wait for, beside others of `reader`: reads whose bytes are not at
  /// hand end with not_cached() as their error. That of mapped files may meet some pages that just left. Any thread.
  virtual std::unique_ptr<Channel> open_cached_channel(Reader reader);
  /// The way that open_channel(reader) takes here: "pread", "uring", … Any thread.
  [[nodiscard]] virtual std::string reader_name(Reader reader) = 0;
};

}  // namespace penstock
