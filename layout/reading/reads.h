// What the sources of this folder share: planning reads that stay inside their file, and little-endian loads.
//
// Pure functions over one row; one thread at a time for each row.
#pragma once

#include "core/rows/source.h"

#include <cstdint>
#include <cstring>
#include <span>

namespace penstock::layout {

/// A merged read is at most kMaxReadAmplification times what is needed of it, and a page.
inline constexpr std::uint64_t kMaxReadAmplification = 4;
inline constexpr std::uint64_t kReadSlackBytes = 4096;

[[noreturn]] void raise_outside(const File& file, std::uint64_t offset, std::uint64_t size);

/// Throws Corruption if the range is not inside the file.
inline void check_inside(const File& file, std::uint64_t offset, std::uint64_t size) {
  if (offset > file.bytes || size > file.bytes - offset) raise_outside(file, offset, size);
}

/// Memory of the row for `size` bytes of the file from `offset` on. Throws InvalidArgument where the row may not take
/// so many; Corruption where the file has not even as many as it should.
std::byte* make_room(Row& row, const File& file, std::uint64_t offset, std::uint64_t size);

/// Throws as make_room() if `size` bytes, of the file's records from `offset` on, are more than the row may take.
void check_records_fit(const Row& row, const File& file, std::uint64_t offset, std::uint64_t size);

/// Appends the read of `size` bytes at `offset` to `destination`; nothing for size 0. Throws Corruption if that is not
/// inside the file: offsets come from other files, which are untrusted.
void plan_read(const File& file, std::uint64_t offset, std::uint64_t size, std::byte* destination, Reads& out);

/// The same into the row's arena, which is asked for memory only after the check. Returns where the bytes will be,
/// never nullptr.
const std::byte* plan_read(Row& row, const File& file, std::uint64_t offset, std::uint64_t size, Reads& out);

/// A range of a file that is wanted, and where its bytes will be.
struct Wanted {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  const std::byte* bytes = nullptr;
};

/// Whether plan_merged would read all of `wanted` at once.
bool is_one_read(std::span<const Wanted> wanted);

/// Reads all of `wanted` (begin and end non-decreasing; neighbours may overlap) into the row's arena: near ones in one
/// read, far ones apart, by the limit above. Sets `bytes`, never to nullptr.
void plan_merged(Row& row, const File& file, std::span<Wanted> wanted, Reads& out);

template <typename T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Element `i` of an array of T that need not be aligned.
template <typename T>
T load_at(const std::byte* array, std::uint64_t i) noexcept {
  return load<T>(array + i * sizeof(T));
}

}  // namespace penstock::layout
