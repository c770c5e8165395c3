// A source in memory with records of any fields: packed, or each field's values in an array of its own beside the
// others.
#pragma once

#include "tests/native/core/engine/memory_source.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {

/// Rows of `length` records, or of the `lengths` that are given, one after the other in `bytes`, which holds packed
/// records of `fields`. Documents begin at these records of the whole stream (spans; ascending, twice where one is
/// empty), and at its first.
struct FieldRows {
  std::string fields;
  std::vector<std::byte> bytes = {};
  std::uint64_t length = 0;
  std::vector<std::uint64_t> lengths = {};  // ragged
  std::vector<std::uint64_t> documents = {};
  bool apart = false;
  std::uint64_t lead = 0;          // of the row's place; nothing is read there
  std::uint64_t lookahead = 0;     // records that a row shares with the next one
  std::uint64_t stored_extra = 0;  // hidden bytes behind each record
};

class FieldSource : public Source {
 public:
  explicit FieldSource(FieldRows rows) : rows_(std::move(rows)) {
    info_.schema = Schema::parse(rows_.fields);
    packed_bytes_ = info_.schema.record_bytes() + rows_.stored_extra;
    info_.stored_record_bytes = packed_bytes_;
    const bool ragged = rows_.length == 0;
    const std::uint64_t records = rows_.bytes.size() / packed_bytes_;
    info_.size = ragged ? rows_.lengths.size() : (records - rows_.lookahead) / (rows_.length - rows_.lookahead);
    info_.shape = {ragged, rows_.length, rows_.lead, 0};
    info_.fields_apart = rows_.apart;
    info_.identity = {"beef", 1, records, R"({"kind":"fields"})", ""};
    std::vector<std::byte> stored;
    for (std::uint64_t i = 0; i < info_.size; ++i) {
      starts_.push_back(stored.size());
      append(first_of(i), count_of(i), stored);
    }
    stored.resize(stored.size() + 1);
    store_ = std::make_unique<MemoryStore>(std::make_shared<Behaviour>());
    file_ = store_->put("fields", std::move(stored));
  }

  const SourceInfo& info() const override { return info_; }

  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override {
    if (info_.shape.ragged && round == 0) {
      row.length = count_of(row.index);
      row.measured = true;
      return true;
    }
    row.state = has(wanted, Parts::Spans) ? row.arena.make<int>(1) : nullptr;
    if (row.length == 0) return false;
    Read& read = out.emplace_back();
    read.file = &file_;
    read.offset = starts_[row.index];
    read.size = row.length * packed_bytes_;
    read.destination = row.records;
    return false;
  }

  void spans(const Row& row, SpanTable& out) const override {
    if (row.state == nullptr) return;  // they were not wanted
    const std::uint64_t first = first_of(row.index);
    std::uint64_t begin = first;
    std::uint64_t document = 0;  // number of the entry, and where it begins
    std::uint64_t document_begin = 0;
    const auto add = [&](std::uint64_t end) {
      if (end <= begin) return;
      out.push_back({.start = begin - first,
                     .stop = end - first,
                     .offset = static_cast<std::int64_t>(begin - document_begin),
                     .entry = document});
      begin = end;
    };
    for (const std::uint64_t next : rows_.documents) {
      add(std::min(next, first + row.length));
      document_begin = next;
      ++document;
    }
    add(first + row.length);
  }

  [[nodiscard]] std::uint64_t first_of(std::uint64_t row) const {
    if (rows_.length > 0) return row * (rows_.length - rows_.lookahead);
    std::uint64_t first = 0;
    for (std::uint64_t i = 0; i < row; ++i) first += rows_.lengths[i];
    return first;
  }
  [[nodiscard]] std::uint64_t count_of(std::uint64_t row) const {
    return rows_.length > 0 ? rows_.length : rows_.lengths[row];
  }

 private:
  void append(std::uint64_t first, std::uint64_t count, std::vector<std::byte>& out) const {
    const std::byte* records = rows_.bytes.data() + first * packed_bytes_;
    if (!rows_.apart) {
      out.insert(out.end(), records, records + count * packed_bytes_);
      return;
    }
    for (const Leaf& leaf : info_.schema.leaves()) {
      const std::uint64_t bytes = leaf.item_bytes * leaf.count();
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::byte* value = records + i * packed_bytes_ + leaf.offset_bytes;
        out.insert(out.end(), value, value + bytes);
      }
    }
  }

  FieldRows rows_;
  SourceInfo info_;
  std::uint64_t packed_bytes_ = 0;
  std::vector<std::uint64_t> starts_;  // of each row in the file
  std::unique_ptr<MemoryStore> store_;
  File file_;
};

/// The bytes of values, one behind the other.
template <typename... Values>
void put_values(std::vector<std::byte>& bytes, Values... values) {
  const auto one = [&](auto value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
  };
  (one(values), ...);
}

}  // namespace penstock::testing
