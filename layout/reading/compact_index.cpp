#include "layout/reading/compact_index.h"

#include "core/base/checked.h"

namespace penstock::layout {

void check_compact(const Shard& shard) {
  const auto check = [](const File& file, std::uint64_t wanted) {
    if (file.bytes == wanted) return;
    raise(ErrorKind::Corruption, "{}: {} bytes, its shard's counts want {}", file.path(), with_commas(file.bytes),
          with_commas(wanted));
  };
  const char* name = shard.name.c_str();
  check(shard.index, checked_mul(checked_add(shard.spans, 1, name), sizeof(CompactIndexEntry), name));
  check(shard.directory, directory_entries(shard.records) * kDirectoryEntryBytes);
}

void check_span_starts(const Shard& shard, const std::byte* index, std::uint64_t low, std::uint64_t high) {
  const auto fail = [&](std::uint64_t number, CompactIndexEntry seen) {
    raise(ErrorKind::Corruption, "{}: entry {} is (record {}, byte {}): out of order or beyond {} records, {} bytes",
          shard.index.path(), with_commas(number), with_commas(seen.first_record), with_commas(seen.byte_offset),
          with_commas(shard.records), with_commas(shard.data.bytes));
  };
  CompactIndexEntry last = load_span_start(index, 0);
  if (low == 0 && (last.first_record != 0 || last.byte_offset != 0)) fail(0, last);
  for (std::uint64_t number = low + 1; number <= high; ++number) {
    const CompactIndexEntry next = load_span_start(index, number - low);
    if (next.first_record < last.first_record || next.byte_offset < last.byte_offset) fail(number, next);
    last = next;
  }
  if (last.first_record > shard.records || last.byte_offset > shard.data.bytes) fail(high, last);
  if (high == shard.spans && (last.first_record != shard.records || last.byte_offset != shard.data.bytes))
    fail(high, last);
}

}  // namespace penstock::layout
