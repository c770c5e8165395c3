// ScriptedSource: rows whose rounds a test says, over any files, for tests of what drives rows.
#pragma once

#include "core/batch/batch.h"
#include "core/rows/source.h"
#include "tests/native/core/io/memory_store.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace penstock::testing {

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

}  // namespace penstock::testing
