// Sources and stores in memory, for tests of the engine: records whose values tell where they come from, and channels
// that complete at once, late and out of order, or with errors.
#pragma once

#include "core/base/error.h"
#include "core/batch/batch.h"
#include "core/batch/source.h"
#include "core/io/byte_store.h"
#include "core/io/local/cached_channel.h"
#include "core/job/order.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
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
  std::atomic<int> refused{0};                // submit() throws so many times
  unsigned miss_every = 1;                    // of the reads that may not wait, the n-th, 2n-th, … misses
  std::atomic<unsigned> asked{0};             // so many of those there were …
  std::atomic<unsigned> hits{0};              // … and so many did not miss
};

class MemoryStore : public ByteStore {
 public:
  MemoryStore(std::vector<std::byte> bytes, std::shared_ptr<Behaviour> behaviour)
      : bytes_(std::move(bytes)), behaviour_(std::move(behaviour)) {}

  std::unique_ptr<Channel> open_channel(Reader) override { return std::make_unique<MemoryChannel>(*this); }
  std::unique_ptr<Channel> open_cached_channel(Reader /*reader*/) override {
    return std::make_unique<CachedMemoryChannel>(*this);
  }
  std::string reader_name(Reader) override { return "memory"; }

 private:
  class MemoryChannel : public Channel {
   public:
    explicit MemoryChannel(MemoryStore& store) : store_(store) {}

    void submit(std::span<Read* const> reads) override {
      if (store_.behaviour_->refused.fetch_sub(1) > 0) throw std::bad_alloc();
      for (Read* read : reads) {
        if (!store_.behaviour_->late) store_.read(*read);
        pending_.push_back(read);
      }
    }

    std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override {
      const bool late = store_.behaviour_->late;
      if (late && timeout.count() == 0) return 0;
      if (late) std::this_thread::sleep_for(store_.behaviour_->delay);
      std::size_t count = 0;
      // Late channels give one read at a time, the last first, so that rows end in the most unlikely order.
      while (!pending_.empty() && count < (late ? 1 : done.size())) {
        done[count] = pending_.back();
        pending_.pop_back();
        if (late) store_.read(*done[count]);
        ++count;
      }
      return count;
    }

    void wake() override {}

   private:
    MemoryStore& store_;
    std::vector<Read*> pending_;
  };

  class CachedMemoryChannel : public Channel {
   public:
    explicit CachedMemoryChannel(MemoryStore& store) : store_(store) {}

    void submit(std::span<Read* const> reads) override { pending_.insert(pending_.end(), reads.begin(), reads.end()); }
    std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds) override {
      std::size_t count = 0;
      for (; !pending_.empty() && count < done.size(); ++count) {
        done[count] = pending_.back();
        pending_.pop_back();
        Behaviour& behaviour = *store_.behaviour_;
        const bool fails = static_cast<std::int64_t>(done[count]->offset) == behaviour.fail_offset;
        if (fails || ++behaviour.asked % behaviour.miss_every == 0) {
          done[count]->error = not_cached();
        } else {
          ++behaviour.hits;
          store_.read(*done[count]);
        }
      }
      return count;
    }
    void wake() override {}

   private:
    MemoryStore& store_;
    std::vector<Read*> pending_;
  };

  void read(Read& read) {
    if (static_cast<std::int64_t>(read.offset) == behaviour_->fail_offset && behaviour_->failures.fetch_sub(1) > 0) {
      read.error = std::make_exception_ptr(Error(ErrorKind::IoError, "memory: offset " + std::to_string(read.offset)));
      return;
    }
    std::memcpy(read.destination, bytes_.data() + read.offset, read.size);
  }

  std::vector<std::byte> bytes_;
  std::shared_ptr<Behaviour> behaviour_;
};

/// u32 records 0, 1, 2, … cut into `count` rows: windows of `window` records (an odd row's first record is read in a
/// second round), or, if window is 0, documents of index % 4 records. Each row has one span whose bytes are its index.
/// The records may count from `first` on instead, so that two sources are told apart.
class MemorySource : public Source {
 public:
  MemorySource(std::uint64_t count, std::uint64_t window, std::shared_ptr<Behaviour> behaviour, std::uint32_t first = 0)
      : window_(window) {
    std::vector<std::uint32_t> values(count * std::max<std::uint64_t>(window, 4));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<std::uint32_t>(i);
    std::vector<std::byte> bytes(values.size() * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    file_ = {"memory", bytes.size()};
    info_.size = count;
    info_.identity = {"f00d", 1, file_.bytes / 4, R"({"kind":"memory","window":)" + std::to_string(window_) + "}", ""};
    info_.schema = Schema::parse(R"([["token","<u4"]])");
    info_.stored_record_bytes = 4;
    info_.shape = {.ragged = window_ == 0, .length = window_, .lead = 0, .tail = 0};
    info_.store = std::make_shared<MemoryStore>(std::move(bytes), std::move(behaviour));
  }

  const SourceInfo& info() const override { return info_; }

  static std::uint64_t document_length(std::uint64_t index) { return index % 4; }

  bool plan(Row& row, unsigned round, Parts /*wanted*/, Reads& out) const override {
    return window_ == 0 ? plan_document(row, round, out) : plan_window(row, round, out);
  }

  void spans(const Row& row, SpanTable& out) const override {
    out.push_back({.start = 0,
                   .stop = row.length,
                   .begins = true,
                   .ends = true,
                   .offset = 0,
                   .shard = 0,
                   .entry = row.index,
                   .raw = reinterpret_cast<const std::byte*>(row.state),
                   .raw_bytes = 8});
  }

 private:
  void add(std::uint64_t record, std::uint64_t count, std::byte* to, Reads& out) const {
    Read& read = out.emplace_back();
    read.file = &file_;
    read.offset = record * 4;
    read.size = count * 4;
    read.destination = to;
  }

  bool plan_window(Row& row, unsigned round, Reads& out) const {
    const std::uint64_t first = row.index * window_;
    const std::uint64_t late = row.index % 2;  // records left for round 1
    if (round == 0) row.state = row.arena.make<std::uint64_t>(row.index);
    if (round == 0) {
      add(first + late, window_ - late, row.records + late * 4, out);
      return late > 0;
    }
    add(first, 1, row.records, out);
    return false;
  }

  // The length is "found" in round 1, after a read in round 0.
  bool plan_document(Row& row, unsigned round, Reads& out) const {
    if (round == 0) {
      row.state = row.arena.make<std::uint64_t>(row.index);
      add(row.index * 4, 1, row.arena.allocate(4), out);
      return true;
    }
    if (round == 1) {
      row.length = document_length(row.index);
      row.measured = true;
      return true;
    }
    if (row.length > 0) add(row.index * 4, row.length, row.records, out);
    return false;
  }

  std::uint64_t window_;
  File file_;
  SourceInfo info_;
};

/// Position p is observation p mod N.
class IdentityOrder : public Order {
 public:
  explicit IdentityOrder(std::uint64_t size) : size_(size) {}
  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t position = first + i * stride;
      out[i] = {position % size_, position, 0, static_cast<std::uint32_t>(position / size_)};
    }
  }
  std::uint64_t epoch_size() const override { return size_; }
  std::uint64_t end(std::uint64_t) const override { return kNever; }
  std::uint64_t fetch_end(std::uint64_t position) const override { return position + 1; }
  std::string identity(std::uint64_t) const override {
    return R"({"name":"identity","size":)" + std::to_string(size_) + "}";
  }

 private:
  std::uint64_t size_;
};

/// The positions from `begin` on, up to the next stage, are of one source.
struct Stage {
  std::uint64_t begin = 0;
  std::uint32_t source = 0;
};

/// As IdentityOrder, in stages that need not end where epochs do. If not `ends`, batches may cross from one to the
/// next.
class StagedOrder : public IdentityOrder {
 public:
  StagedOrder(std::uint64_t size, std::vector<Stage> stages, bool ends = true)
      : IdentityOrder(size), stages_(std::move(stages)), ends_(ends) {}

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override {
    IdentityOrder::pick(first, stride, out);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].source = std::prev(after(first + i * stride))->source;
  }
  std::uint64_t end(std::uint64_t position) const override {
    const auto next = after(position);
    return ends_ && next != stages_.end() ? next->begin : kNever;
  }

 private:
  std::vector<Stage>::const_iterator after(std::uint64_t position) const {
    return std::upper_bound(stages_.begin(), stages_.end(), position,
                            [](std::uint64_t p, const Stage& stage) { return p < stage.begin; });
  }

  std::vector<Stage> stages_;
  bool ends_;
};

}  // namespace penstock::testing
