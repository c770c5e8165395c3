// What a source's tests share: the simplest engine there can be: plan, read, plan, …
#pragma once

#include "core/base/error.h"
#include "core/io/open_store.h"
#include "core/rows/source.h"
#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace penstock::testing {

/// A path of this machine, in the tests' own local store.
Location local(const std::string& path);
std::vector<Location> local(const std::vector<std::string>& paths);

void write_file(const std::string& path, std::span<const std::byte> bytes);

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// A row as it was delivered, and the reads that it took.
struct Driven {
  Row row;
  std::vector<std::byte> memory;  // lead, records, tail
  std::vector<Read> reads;
  unsigned rounds = 0;

  [[nodiscard]] std::span<const std::byte> records(const Source& source) const {
    return {row.records, row.length * source.info().stored_record_bytes};
  }
  /// Bytes read of the files whose name ends with `suffix`, and in how many reads.
  [[nodiscard]] std::uint64_t bytes_read(const std::string& suffix) const;
  [[nodiscard]] std::size_t reads_of(const std::string& suffix) const;
};

/// A span, but for its entry's bytes; and those.
inline auto place_of(const Span& span) {
  return std::tie(span.start, span.stop, span.begins, span.ends, span.offset, span.shard, span.entry);
}
inline std::string entry_of(const Span& span) {
  return {reinterpret_cast<const char*>(span.raw), span.raw_bytes};
}

/// Reads it, by itself; it is checked to stay inside its file.
void perform(const Read& read);

/// Drives observation `index` to its end. Each read is checked to stay inside its file and the row's memory. Without
/// Parts::Records the row has no memory for them.
void drive(const Source& source, std::uint64_t index, Driven& out, Parts wanted = Parts::All);
inline Driven driven(const Source& source, std::uint64_t index, Parts wanted = Parts::All) {
  Driven out;
  drive(source, index, out, wanted);
  return out;
}

/// Drives each `step`-th observation; returns how many were refused, as Corruption.
std::uint64_t drive_all(const Source& source, std::uint64_t step = 1);

}  // namespace penstock::testing
