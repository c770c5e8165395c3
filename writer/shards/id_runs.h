// IdRuns: finds the spans of the ids layout, the maximal runs of one id, and makes their digest.
//
// Keeps 24 bytes an entry, since a later record may refer to any of them. One thread at a time.
#pragma once

#include "layout/dataset/digest.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

class IdRuns {
 public:
  /// The next entry: its size and the digest of its bytes.
  void add_entry(std::uint64_t bytes, const DigestBytes& digest) { entries_.push_back({bytes, digest}); }

  [[nodiscard]] std::uint64_t entries() const noexcept { return entries_.size(); }

  /// The next stored records, whose last four bytes are the id. Returns the number within `records` of the first whose
  /// id no entry has; everything before it was taken.
  std::optional<std::uint64_t> update(std::span<const std::byte> records, std::uint64_t record_bytes) {
    const std::byte* at = records.data() + record_bytes - 4;
    for (std::uint64_t i = 0; i < records.size() / record_bytes; ++i, at += record_bytes) {
      std::uint32_t id = 0;
      std::memcpy(&id, at, 4);
      if (id >= entries_.size()) return i;
      if (length_ != 0 && id != id_) end_run();
      id_ = id;
      ++length_;
    }
    return std::nullopt;
  }

  /// Ends the last run. Afterwards spans() and digest() are those of the shard.
  void finish() {
    if (length_ != 0) end_run();
  }

  [[nodiscard]] std::uint64_t spans() const noexcept { return spans_; }
  [[nodiscard]] DigestBytes digest() const { return digest_.bytes(); }

 private:
  struct Entry {
    std::uint64_t bytes;
    DigestBytes digest;
  };

  void end_run() {
    digest_.add(length_, entries_[id_].bytes, entries_[id_].digest);
    length_ = 0;
    ++spans_;
  }

  std::vector<Entry> entries_;
  layout::SpanDigest digest_;
  std::uint32_t id_ = 0;
  std::uint64_t length_ = 0;  // of the run under way
  std::uint64_t spans_ = 0;
};

}  // namespace penstock::writer
