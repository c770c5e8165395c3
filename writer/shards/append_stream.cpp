// DatasetWriter's appends of records that native code reads: no array is made of them.
#include "core/base/error.h"
#include "writer/files/stream_input.h"
#include "writer/shards/dataset_writer.h"

#include <algorithm>
#include <cstring>

namespace penstock::writer {
namespace {

// The number of the first value of `values` from `from` on that has these bytes; their count: none.
template <typename T>
std::uint64_t find_value(Bytes values, std::uint64_t from, std::uint64_t wanted) {
  const std::uint64_t count = values.size() / sizeof(T);
  const auto at = [&](std::uint64_t i) {
    T value;
    std::memcpy(&value, values.data() + i * sizeof(T), sizeof(T));
    return value == static_cast<T>(wanted);
  };
  constexpr std::uint64_t kBlock = 64;  // of which no more is asked than whether one has it: a vector loop
  for (; from + kBlock <= count; from += kBlock) {
    unsigned any = 0;
    for (std::uint64_t i = 0; i < kBlock; ++i) any |= static_cast<unsigned>(at(from + i));
    if (any != 0) break;
  }
  while (from < count && !at(from)) ++from;
  return from;
}

std::uint64_t find_token(Bytes records, std::uint64_t bytes, std::uint64_t from, std::uint64_t token) {
  if (bytes < sizeof(token) && token >> (8 * bytes) != 0) return records.size() / bytes;  // no record can be it
  switch (bytes) {
    case 1: return find_value<std::uint8_t>(records, from, token);
    case 2: return find_value<std::uint16_t>(records, from, token);
    case 4: return find_value<std::uint32_t>(records, from, token);
    default: return find_value<std::uint64_t>(records, from, token);
  }
}

}  // namespace

bool DatasetWriter::can_append(const layout::Dataset& from) const {
  const layout::Format& format = options_.format;
  return options_.shard && format.has_records() && !format.is_ids() && !format.has_columns() &&
         (!format.has_metadata() || format.is_boundaries()) && StreamInput::can_read(from, format.schema);
}

void DatasetWriter::check_can_append(const layout::Dataset& from) const {
  check_usable();
  if (can_append(from)) return;
  raise(ErrorKind::InvalidArgument,
        "{}: no stream of integers in local files, or not for a writer of one shard whose documents have no metadata",
        from.path);
}

void DatasetWriter::append_stream(const layout::Dataset& from, std::uint64_t first,
                                  std::span<const std::uint64_t> lengths) {
  check_can_append(from);
  std::uint64_t end = std::min(first, from.record_count());
  for (const std::uint64_t length : lengths) {
    if (length > from.record_count() - end) {
      raise(ErrorKind::InvalidArgument, "{}: lengths that sum up to more than its records", from.path);
    }
    end += length;
  }
  StreamInput input(from, options_.format.schema, first, end);
  const std::uint64_t record_bytes = options_.format.schema.record_bytes();
  guarded([&] {
    std::uint64_t counted = 0;  // what was read belongs to documents that have begun
    Bytes chunk;
    for (const std::uint64_t length : lengths) {
      if (options_.format.has_metadata()) shard().begin_span(Bytes());
      for (std::uint64_t left = length; left > 0;) {
        if (counted == 0) {
          chunk = input.next(shard().best_count());
          counted = chunk.size() / record_bytes;
        }
        const std::uint64_t part = std::min(left, counted);
        shard().count_records(part);
        left -= part;
        counted -= part;
        if (counted == 0) shard().write_counted(chunk);
      }
      records_ += length;
    }
  });
}

DatasetWriter::CutPart DatasetWriter::append_cut(const layout::Dataset& from, std::uint64_t begin, std::uint64_t end,
                                                 const Cut& cut, bool is_open) {
  check_can_append(from);
  if (!options_.format.has_metadata()) {
    raise(ErrorKind::InvalidArgument, "documents for a writer of a token stream, which keeps none");
  }
  StreamInput input(from, options_.format.schema, begin, end);
  const std::uint64_t record_bytes = options_.format.schema.record_bytes();
  CutPart part{0, is_open};
  guarded([&] {
    for (Bytes chunk = input.next(shard().best_count()); !chunk.empty(); chunk = input.next(shard().best_count())) {
      const std::uint64_t count = chunk.size() / record_bytes;
      for (std::uint64_t at = 0; at < count;) {
        const bool begins = !part.is_open;
        if (begins) shard().begin_span(Bytes());
        part.documents += begins ? 1 : 0;
        // The token with which it begins is not the next one's.
        const std::uint64_t from_here = at + (begins && !cut.ends_document ? 1 : 0);
        const std::uint64_t found = find_token(chunk, record_bytes, from_here, cut.token);
        const std::uint64_t stop = std::min(found + (cut.ends_document ? 1 : 0), count);
        part.is_open = found >= count;
        shard().count_records(stop - at);
        at = stop;
      }
      shard().write_counted(chunk);
      records_ += count;
    }
  });
  return part;
}

}  // namespace penstock::writer
