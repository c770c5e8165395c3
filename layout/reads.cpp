#include "layout/reads.h"

#include "core/base/error.h"

#include <algorithm>

namespace penstock::layout {
namespace {

// How many of `wanted`, from the first on, one read may cover.
std::size_t group_length(std::span<const Wanted> wanted) {
  const std::uint64_t begin = wanted[0].begin;
  std::uint64_t end = wanted[0].end;
  std::uint64_t needed = end - begin;
  std::size_t length = 1;
  for (; length < wanted.size(); ++length) {
    const Wanted& next = wanted[length];
    const std::uint64_t more = next.end - std::max(next.begin, end);
    // Halved sides: four times a size that a file states might overflow.
    if ((next.end - begin) / kMaxReadAmplification > needed + more + kReadSlackBytes / kMaxReadAmplification - 1) break;
    needed += more;
    end = next.end;
  }
  return length;
}

}  // namespace

void raise_outside(const File& file, std::uint64_t offset, std::uint64_t size) {
  raise(ErrorKind::Corruption, "{}: bytes {} to {} are wanted, the file has {}", file.path(), with_commas(offset),
        with_commas(offset + size), with_commas(file.bytes));
}

void plan_read(const File& file, std::uint64_t offset, std::uint64_t size, std::byte* destination, Reads& out) {
  check_inside(file, offset, size);
  if (size == 0) return;
  Read& read = out.emplace_back();
  read.file = &file;
  read.offset = offset;
  read.size = size;
  read.destination = destination;
}

const std::byte* plan_read(Row& row, const File& file, std::uint64_t offset, std::uint64_t size, Reads& out) {
  check_inside(file, offset, size);
  std::byte* destination = row.arena.allocate(size);
  plan_read(file, offset, size, destination, out);
  return destination;
}

bool is_one_read(std::span<const Wanted> wanted) {
  return group_length(wanted) == wanted.size();
}

void plan_merged(Row& row, const File& file, std::span<Wanted> wanted, Reads& out) {
  while (!wanted.empty()) {
    const std::size_t length = group_length(wanted);
    const std::uint64_t begin = wanted[0].begin;
    const std::byte* bytes = plan_read(row, file, begin, wanted[length - 1].end - begin, out);
    for (Wanted& range : wanted.first(length)) range.bytes = bytes + (range.begin - begin);
    wanted = wanted.subspan(length);
  }
}

}  // namespace penstock::layout
