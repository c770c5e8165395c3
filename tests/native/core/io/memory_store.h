// MemoryStore: files in memory, for tests: channels that complete at once, late and out of order, or with errors.
#pragma once

#include "core/base/error.h"
#include "core/io/byte_store.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::testing {

/// How a MemoryStore's channels behave.
struct Behaviour {
  bool late = false;                          // nothing completes in submit(); wait() gives the last read first
  std::chrono::microseconds delay{0};         // of each wait(), if late
  std::atomic<std::int64_t> fail_offset{-1};  // a read that begins here fails …
  std::atomic<int> failures{0};               // … so many times
  std::atomic<std::int64_t> fail_end{-1};     // reads that end beyond it fail, -1: none
  std::atomic<int> refused{0};                // submit() throws so many times
  bool nothing_at_hand = false;               // there are no non-blocking channels
  std::atomic<int> unopened{0};               // open_channel() throws so many times
  std::uint64_t near_bytes = 0;               // see ByteStore
  std::atomic<unsigned> gather{0};            // reads that may wait do so until this many have come, for 10 s at most
  std::atomic<unsigned> gathered{0};          // … those that came
  unsigned miss_every = 1;                    // of the reads that may not wait, the n-th, 2n-th, … misses
  std::atomic<unsigned> asked{0};             // so many of those there were …
  std::atomic<unsigned> hits{0};              // … and so many did not miss
  std::atomic<unsigned> channels{0};          // that were opened and may wait
  std::atomic<std::uint64_t> bytes{0};        // that were read …
  std::atomic<std::uint64_t> runs{0};         // … in so many runs of neighbours, where reads may wait
};

class MemoryStore : public ByteStore {
 public:
  explicit MemoryStore(std::shared_ptr<Behaviour> behaviour = std::make_shared<Behaviour>())
      : behaviour_(std::move(behaviour)) {}

  /// Before any read.
  File put(const std::string& path, std::vector<std::byte> bytes) {
    std::vector<std::byte>& kept = files_[path];
    kept = std::move(bytes);
    return {path, kept.size(), this};
  }

  std::unique_ptr<Channel> open_channel(ChannelMode mode) override {
    if (behaviour_->unopened.fetch_sub(1) > 0) raise(ErrorKind::InvalidArgument, "memory: no channel");
    if (mode == ChannelMode::NonBlocking && behaviour_->nothing_at_hand) return nullptr;
    if (mode == ChannelMode::MayWait) ++behaviour_->channels;
    return std::make_unique<MemoryChannel>(*this, mode);
  }
  std::uint64_t size(const std::string& path, Links /*links*/) override { return find(path).size(); }
  void read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) override {
    const std::vector<std::byte>& bytes = find(path);
    if (offset > bytes.size() || out.size() > bytes.size() - offset) {
      raise(ErrorKind::Corruption, "{}: ends at byte {}", path, bytes.size());
    }
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
  }
  std::vector<std::string> list(const std::string& path) override {
    std::set<std::string> names;
    const std::string prefix = path + "/";
    for (const auto& [name, bytes] : files_) {
      if (name.starts_with(prefix))
        names.insert(name.substr(prefix.size(), name.find('/', prefix.size()) + 1 - prefix.size()));
    }
    if (names.empty()) throw Error(ErrorKind::NotFound, path + ": no such folder", ENOENT, path);
    return {names.begin(), names.end()};
  }
  std::size_t reads_in_flight() override { return behaviour_->late ? 64 : 1; }
  std::uint64_t near_bytes() const override { return behaviour_->near_bytes; }
  std::string name() override { return "memory"; }

 private:
  class MemoryChannel : public Channel {
   public:
    MemoryChannel(MemoryStore& store, ChannelMode mode) : store_(store), mode_(mode) {}

    void submit(std::span<Read* const> reads) override {
      const bool waits = mode_ == ChannelMode::MayWait;
      if (waits && store_.behaviour_->refused.fetch_sub(1) > 0) throw std::bad_alloc();
      const Read* last = nullptr;
      if (waits) store_.gather();
      for (Read* read : reads) {
        const bool follows = last != nullptr && last->file == read->file && last->offset + last->size == read->offset;
        if (waits && !follows) ++store_.behaviour_->runs;
        last = read;
        if (waits && !store_.behaviour_->late) store_.read(*read);
        pending_.push_back(read);
      }
    }

    std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override {
      const bool waits = mode_ == ChannelMode::MayWait;
      const bool late = waits && store_.behaviour_->late;
      if (late && timeout.count() == 0) return 0;
      if (late) std::this_thread::sleep_for(store_.behaviour_->delay);
      std::size_t count = 0;
      // Late channels give one read at a time, the last first, so that rows end in the most unlikely order.
      while (!pending_.empty() && count < (late ? 1 : done.size())) {
        done[count] = pending_.back();
        pending_.pop_back();
        if (late) store_.read(*done[count]);
        if (!waits) store_.read_at_hand(*done[count]);
        ++count;
      }
      return count;
    }

    void wake() override {}

   private:
    MemoryStore& store_;
    const ChannelMode mode_;
    std::vector<Read*> pending_;
  };

  const std::vector<std::byte>& find(const std::string& path) const {
    const auto found = files_.find(path);
    if (found == files_.end()) throw Error(ErrorKind::NotFound, path + ": no such file", ENOENT, path);
    return found->second;
  }

  void gather() {
    if (behaviour_->gather == 0) return;
    ++behaviour_->gathered;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (behaviour_->gathered < behaviour_->gather && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void read_at_hand(Read& read) {
    const bool fails = static_cast<std::int64_t>(read.offset) == behaviour_->fail_offset;
    if (fails || ++behaviour_->asked % behaviour_->miss_every == 0) {
      read.outcome = Outcome::NotAtHand;
    } else {
      ++behaviour_->hits;
      this->read(read);
    }
  }

  void read(Read& read) {
    if (static_cast<std::int64_t>(read.offset) == behaviour_->fail_offset && behaviour_->failures.fetch_sub(1) > 0) {
      read.fail(std::make_exception_ptr(Error(ErrorKind::IoError, "memory: offset " + std::to_string(read.offset))));
      return;
    }
    const std::int64_t end = behaviour_->fail_end;
    if (end >= 0 && static_cast<std::int64_t>(read.offset + read.size) > end) {
      read.fail(std::make_exception_ptr(Error(ErrorKind::IoError, "memory: ends at " + std::to_string(end))));
      return;
    }
    behaviour_->bytes += read.size;
    try {
      read_small(read.file->path(), read.offset, std::span(read.destination, read.size));
    } catch (...) {
      read.fail(std::current_exception());
    }
  }

  std::map<std::string, std::vector<std::byte>> files_;
  std::shared_ptr<Behaviour> behaviour_;
};

}  // namespace penstock::testing
