// RecordInput: the records of a shard from front to back, whole ones, checked against their CRCs and digests.
//
// One thread at a time. Memory is two buffers of 1 MiB.
#pragma once

#include "layout/dataset/manifest.h"
#include "writer/files/checked_input.h"
#include "writer/shards/field_digests.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

class RecordInput {
 public:
  /// stream.bin of the shard in the folder `path`; its records have no ids. Throws as CheckedInput.
  RecordInput(const std::string& path, const layout::Format& format, const layout::ShardInfo& info, Progress& progress);

  /// Calls take(part) for the next `count` records, which must be there. Throws Corruption, IoError.
  template <typename Take>
  void take(std::uint64_t count, Take&& take) {
    while (count != 0) {
      if (ready_.empty()) load();
      const auto part = ready_.first(std::min(count, ready_.size() / record_bytes_) * record_bytes_);
      ready_ = ready_.subspan(part.size());
      count -= part.size() / record_bytes_;
      take(part);
    }
  }

  /// After the last record: throws Corruption where a field's digest is not what the manifest says.
  void check_digests() const;

 private:
  void load();

  const layout::Format& format_;
  const layout::ShardInfo& info_;
  const std::uint64_t record_bytes_;
  CheckedInput file_;
  FieldDigests digests_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> ready_;
  std::uint64_t next_ = 0;  // byte
};

}  // namespace penstock::writer
