// Sources in memory, for tests of the engine: records whose values tell where they come from, or rows whose rounds a
// test says, over any files; and orders over them.
#pragma once

#include "core/batch/batch.h"
#include "core/job/order.h"
#include "core/rows/source.h"
#include "tests/native/core/io/memory_store.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {

/// u32 records 0, 1, 2, … cut into `count` rows: windows of `window` records (an odd row's first record is read in a
/// second round), or, if window is 0, documents of index % 4 records. Each row has one span whose bytes are its index.
/// The records may count from `first` on instead, so that two sources are told apart.
class MemorySource : public Source {
 public:
  MemorySource(std::uint64_t count, std::uint64_t window, std::shared_ptr<Behaviour> behaviour, std::uint32_t first = 0)
      : window_(window), first_(first) {
    std::vector<std::uint32_t> values(count * std::max<std::uint64_t>(window, 4));
    std::iota(values.begin(), values.end(), first);
    std::vector<std::byte> bytes(values.size() * 4);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    store_ = std::make_unique<MemoryStore>(std::move(behaviour));
    file_ = store_->put("memory", std::move(bytes));
    info_.size = count;
    info_.identity = {"f00d", 1, file_.bytes / 4, R"({"kind":"memory","window":)" + std::to_string(window_) + "}", ""};
    info_.schema = Schema::parse(R"([["token","<u4"]])");
    info_.stored_record_bytes = 4;
    info_.shape = {.ragged = window_ == 0, .length = window_, .lead = 0, .tail = 0};
  }

  const SourceInfo& info() const override { return info_; }

  [[nodiscard]] MemoryStore& store() const { return *store_; }

  static std::uint64_t document_length(std::uint64_t index) { return index % 4; }

  [[nodiscard]] std::vector<std::uint32_t> records_of(std::uint64_t index) const {
    std::vector<std::uint32_t> records(window_ > 0 ? window_ : document_length(index));
    std::iota(records.begin(), records.end(), first_ + static_cast<std::uint32_t>(index * (window_ > 0 ? window_ : 4)));
    return records;
  }

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
  std::uint32_t first_;
  std::unique_ptr<MemoryStore> store_;
  File file_;
  SourceInfo info_;
};

/// `count` bytes that tell their offset and file: byte i is i * 7 + i / 256 + salt.
inline std::vector<std::byte> telling_bytes(std::uint64_t count, unsigned salt) {
  std::vector<std::byte> bytes(count);
  for (std::uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256 + salt);
  return bytes;
}

class ScriptedSource : public Source {
 public:
  using Plan = std::function<bool(Row& row, unsigned round, Reads& out)>;

  /// Rows of `length` records of one byte; 0: ragged ones.
  ScriptedSource(std::uint64_t length, Plan plan)
      : ScriptedSource({.ragged = length == 0, .length = length, .lead = 0, .tail = 0}, std::move(plan)) {}
  ScriptedSource(const RowShape& shape, Plan plan) : plan_(std::move(plan)) {
    info_.size = 1'000'000;
    info_.identity = {"5c21", 1, info_.size, R"({"kind":"scripted"})", ""};
    info_.schema = Schema::parse(R"([["byte","|u1"]])");
    info_.stored_record_bytes = 1;
    info_.shape = shape;
  }

  const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned round, Parts /*wanted*/, Reads& out) const override { return plan_(row, round, out); }
  void spans(const Row& row, SpanTable& out) const override { out.push_back({.stop = row.length, .entry = row.index}); }

  /// Appends a read; returns true, for rounds that others follow.
  static bool read(const File& file, std::uint64_t offset, std::uint64_t size, std::byte* to, Reads& out) {
    Read& read = out.emplace_back();
    read.file = &file;
    read.offset = offset;
    read.size = size;
    read.destination = to;
    return true;
  }

 private:
  Plan plan_;
  SourceInfo info_;
};

/// Rows of a source as they are stored, without columns.
inline BatchFormat plain_format(std::shared_ptr<const Source> source) {
  return {std::move(source), {}};
}

/// Position p is observation p mod N. Each run of `fetch` positions of an epoch is a fetch.
class IdentityOrder : public Order {
 public:
  explicit IdentityOrder(std::uint64_t size, std::uint64_t fetch = 1) : size_(size), fetch_(fetch) {}
  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t position = first + i * stride;
      const std::uint64_t first_fetch = position / size_ * size_;  // there are no more than observations
      out[i] = {position % size_, first_fetch + position % size_ / fetch_, 0,
                static_cast<std::uint32_t>(position / size_)};
    }
  }
  std::uint64_t epoch_size() const override { return size_; }
  std::uint64_t end(std::uint64_t) const override { return kNever; }
  std::uint64_t fetch_end(std::uint64_t position) const override {
    const std::uint64_t offset = position % size_;
    return position - offset + std::min(size_, (offset / fetch_ + 1) * fetch_);
  }
  std::string identity(std::uint64_t) const override {
    return R"({"name":"identity","size":)" + std::to_string(size_) + "}";
  }

 private:
  std::uint64_t size_;
  std::uint64_t fetch_;
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
  StagedOrder(std::uint64_t size, std::vector<Stage> stages, bool ends = true, std::uint64_t fetch = 1)
      : IdentityOrder(size, fetch), stages_(std::move(stages)), ends_(ends) {}

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
