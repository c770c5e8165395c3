// VirtualStore: reads files of memory, whose reads end when the schedule says so, in any order, or fail.
//
// Until a read ends its destination holds bytes that are wrong: who looks too early is found.
#pragma once

#include "core/io/byte_store.h"
#include "tests/native/schedules/scheduler.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::schedules {

/// How its channels behave. Chances are once in so many times; 0: never.
struct StoreOptions {
  std::size_t depth = 1;  // reads under way in a channel; 1: it reads one after the other and cannot be woken
  std::uint64_t near_bytes = 0;
  unsigned misses = 0;           // chance that a read that may not wait is not at hand
  bool nothing_at_hand = false;  // there are no channels that may not wait
  unsigned cached = 0;           // chance that a read ends as soon as it begins
  unsigned fails = 0;            // chance that a read fails …
  unsigned changes = 0;          // … because its file changed
  unsigned refuses = 0;          // chance that a channel takes no reads
  unsigned unopened = 0;         // chance that there is no channel
  unsigned most_faults = 0;
  Nanoseconds read_time = 0;  // at most, of a read
};

class VirtualStore : public ByteStore {
 public:
  VirtualStore(const StoreOptions& options, ByteStore& files) : options_(options), files_(files) {}

  std::unique_ptr<Channel> open_channel(ChannelMode mode) override;
  std::uint64_t size(const std::string& path, Links links) override { return files_.size(path, links); }
  void read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) override {
    files_.read_small(path, offset, out);
  }
  std::vector<std::string> list(const std::string& path) override { return files_.list(path); }
  std::size_t reads_in_flight() override { return options_.depth; }
  std::uint64_t near_bytes() const override { return options_.near_bytes; }
  std::string name() override { return "virtual"; }

  /// Errors that were injected.
  [[nodiscard]] unsigned faults() const noexcept { return faults_; }
  /// The store that it reads for.
  [[nodiscard]] ByteStore& files() const noexcept { return files_; }
  /// Whether this chance came true, for once more.
  bool faults_now(unsigned once_in);
  /// To its end.
  void read(Read& read);
  [[nodiscard]] const StoreOptions& options() const noexcept { return options_; }

 private:
  const StoreOptions options_;
  ByteStore& files_;
  unsigned faults_ = 0;
};

}  // namespace penstock::schedules
