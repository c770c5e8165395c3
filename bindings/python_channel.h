// PythonChannel: reads that threads of Python's bring, as a Channel of the engine.
//
// Puts requests into PythonCalls and touches no Python itself. Owned by one thread. In a child after a fork it may only
// be destroyed.
#pragma once

#include "bindings/python_calls.h"
#include "core/io/byte_store.h"
#include "core/io/read_queue.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace penstock::bindings {

class PythonChannel final : public Channel {
 public:
  /// A request for neighbours has at most this many bytes: as over HTTP, where it was measured (core/io/http).
  static constexpr std::uint64_t kMostBytes = 8 << 20;

  explicit PythonChannel(std::shared_ptr<PythonCalls> calls);
  ~PythonChannel() override;
  PythonChannel(const PythonChannel&) = delete;
  PythonChannel& operator=(const PythonChannel&) = delete;

  void submit(std::span<Read* const> reads) override;
  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override;
  void wake() override;

 private:
  const std::shared_ptr<PythonCalls> calls_;
  const std::uint64_t forks_;
  std::unique_ptr<Asker> asker_;
  StoreRequests collected_;
  ReadQueue ended_;  // not handed out
  std::size_t under_way_ = 0;
};

}  // namespace penstock::bindings
