// AskedBlocks: blocks of indices that a function gives, kept, and asked for ahead of those who need them.
//
// A function of Python's is called by a thread of Python's: it takes calls and answers them, and threads of the engine
// wait for the answers; none of them waits for the GIL. A C function is called by whoever needs its block. Errors are
// not kept: who asks again has the function called again. Any thread; nothing here touches Python. In a child after a
// fork the thread is not there, and who would wait for it is refused.
#pragma once

#include "shuffle/asked.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::bindings {

struct AskedFunction {
  std::string words;               // that messages call it
  std::uint64_t length = 0;        // of an epoch
  std::uint64_t observations = 0;  // of the view: indices are below it
};

class AskedBlocks {
 public:
  /// Blocks that are kept: for some threads at work, and one that is asked for ahead.
  static constexpr std::size_t kKept = 8;

  /// Fills `out` with the indices from position `first` of an epoch on.
  using Compute = std::function<void(std::uint32_t epoch, std::uint64_t first, std::span<std::uint64_t> out)>;

  /// With `compute` no thread is asked. Throws InvalidArgument for a length that no order has.
  static std::shared_ptr<AskedBlocks> make(AskedFunction function, Compute compute = {});
  AskedBlocks(const AskedBlocks&) = delete;
  AskedBlocks& operator=(const AskedBlocks&) = delete;

  // --- those who ask
  /// The block, if it is kept; else null. Never waits.
  shuffle::IndexBlock find(std::uint32_t epoch, std::uint64_t number);
  /// The block; `while_waiting` is called several times a second meanwhile, and may throw. Throws what the function
  /// failed with; InvalidArgument, which names epoch and position, for an index that the view does not have;
  /// PicksCancelled.
  shuffle::IndexBlock get(std::uint32_t epoch, std::uint64_t number, const std::function<void()>& while_waiting = {});

  /// Blocks of epochs from this one on are asked for when they are needed, and not ahead. Of several calls the largest
  /// counts.
  void note_end(std::uint64_t epochs);

  // --- the thread that answers
  struct Request;
  using Call = std::shared_ptr<Request>;
  struct Request {
    std::uint32_t epoch = 0;
    std::uint64_t number = 0;
    std::uint64_t first = 0;  // position of the epoch
    std::uint64_t count = 0;

    // The rest is AskedBlocks'.
    bool is_taken = false;
    bool has_ended = false;
    std::size_t waiting = 0;
    shuffle::IndexBlock block = {};
    std::exception_ptr error = {};
  };
  /// Waits for a call: of those that are waited for the earliest, since batches are given in order; else one that is
  /// asked for ahead. Null: the thread is to end.
  Call take();
  /// Another number of them than asked for, or one that the view does not have, is an error of who waits.
  void give(const Call& call, std::vector<std::uint64_t> indices);
  void fail(const Call& call, const std::exception_ptr& error);
  /// Nobody asks any more: the thread ends. Nothing in a child after a fork, where a thread of its parent's may hold
  /// the mutex for ever.
  void stop() noexcept;

  /// "orders.Custom 'ramp', version 2: epoch 0, positions 0 to 65,535".
  [[nodiscard]] std::string words_of(const Request& call) const;

 private:
  AskedBlocks(AskedFunction function, Compute compute);

  shuffle::IndexBlock find_kept(std::uint32_t epoch, std::uint64_t number);
  [[nodiscard]] Call find_open(std::uint32_t epoch, std::uint64_t number) const;
  Call open(std::uint32_t epoch, std::uint64_t number);
  void ask_ahead(std::uint32_t epoch, std::uint64_t number);
  [[nodiscard]] bool is_known(std::uint32_t epoch, std::uint64_t number) const;
  void wait_for(Request& call, std::unique_lock<std::mutex>& lock, const std::function<void()>& while_waiting);
  void leave(const Call& call);
  [[nodiscard]] std::vector<std::uint64_t> computed(const Request& call) const;
  void check(const Request& call, std::span<const std::uint64_t> indices) const;
  void end(const Call& call, shuffle::IndexBlock block, const std::exception_ptr& error);

  const AskedFunction function_;
  const Compute compute_;
  const std::uint64_t forks_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable answered_;
  std::vector<Call> queue_;  // those of `open_` that are not taken
  std::vector<Call> open_;   // that have not ended
  struct Kept {
    std::uint32_t epoch = 0;
    std::uint64_t number = 0;
    shuffle::IndexBlock block;
  };
  std::vector<Kept> kept_;                                               // the one that was used last is the last
  std::optional<std::uint64_t> epochs_;                                  // of the longest job, where any has an end
  std::optional<std::pair<std::uint32_t, std::uint64_t>> failed_ahead_;  // a block that is not asked for ahead again
  std::thread::id answers_;                                              // the thread that takes calls
  bool is_stopped_ = false;
};

}  // namespace penstock::bindings
