#include "layout/reading/reads.h"

#include "core/base/error.h"
#include "core/io/byte_store.h"

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

// A size that cannot be is no matter of memory. The manifest states sizes, and they are compared when a file is opened,
// which is only now.
[[noreturn]] void raise_too_large(const File& file, std::uint64_t offset, std::uint64_t size, const std::string& why) {
  if (file.store() != nullptr) {
    const std::uint64_t seen = file.store()->size(file.path(), Links::Follow);
    if (seen != file.bytes) {
      raise(ErrorKind::Corruption, "{}: {} bytes, the manifest says {}", file.path(), with_commas(seen),
            with_commas(file.bytes));
    }
  }
  raise(ErrorKind::InvalidArgument, "{}: {} bytes from byte {} on are wanted at once: {}", file.path(),
        with_commas(size), with_commas(offset), why);
}

}  // namespace

std::byte* make_room(Row& row, const File& file, std::uint64_t offset, std::uint64_t size) {
  try {
    return row.arena.allocate(size);
  } catch (const Error& error) {
    raise_too_large(file, offset, size, error.what());
  }
}

void check_records_fit(const Row& row, const File& file, std::uint64_t offset, std::uint64_t size) {
  if (size <= row.most_bytes()) return;
  raise_too_large(file, offset, size,
                  fmt::format("a document may have at most {}: raise max_bytes", with_commas(row.most_bytes())));
}

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
  std::byte* destination = make_room(row, file, offset, size);
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
