#include "core/mapped_channel.h"

#include "core/cached_channel.h"
#include "core/file_reads.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace penstock {
namespace {

struct Pages {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

// The pages that a read of this file, at this address, touches.
Pages pages_of(const std::byte* file, std::uint64_t offset, std::uint64_t bytes) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset / page * page;
  return {const_cast<std::byte*>(file) + begin, offset - begin + bytes};
}

// Whether a read of them waits for no device. Who may not write to a file is not told, and then it is taken to be so.
bool are_in_memory(Pages pages) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::array<unsigned char, 64> states;
  while (pages.bytes > 0) {
    const std::size_t part = std::min(pages.bytes, states.size() * page);
    if (::mincore(pages.begin, part, states.data()) != 0) return false;
    const auto end = states.begin() + static_cast<std::ptrdiff_t>((part + page - 1) / page);
    if (!std::all_of(states.begin(), end, [](unsigned char state) { return (state & 1U) != 0; })) return false;
    pages.begin += part;
    pages.bytes -= part;
  }
  return true;
}

void copy(const std::byte* file, const Read& read) {
  if (read.size > 0) std::memcpy(read.destination, file + read.offset, read.size);
}

}  // namespace

void MappedChannel::submit(std::span<Read* const> reads) {
  RunChannel::submit(reads);
  while (!reads.empty() && !trust_.holds()) {
    const std::span<Read* const> run = reads.first(run_length(reads));
    ask_for(run);
    reads = reads.subspan(run.size());
  }
}

// Advice: what is wrong with the file or the range is told where it is read.
void MappedChannel::ask_for(std::span<Read* const> run) {
  if (!is_inside(run)) return;
  const std::byte* file = nullptr;
  try {
    file = files_.hold(*run.front()->file).bytes();
  } catch (...) {
    return;
  }
  const Pages pages = pages_of(file, run.front()->offset, run_bytes(run));
  if (are_in_memory(pages)) return trust_.hit();
  trust_.miss();
  (void)::madvise(pages.begin, pages.bytes, MADV_WILLNEED);
}

void MappedChannel::read_run(std::span<Read* const> run) {
  const std::byte* const file = files_.hold(*run.front()->file).bytes();
  for (Read* read : run) {
    try {
      check_range(*read);
    } catch (...) {
      read->error = std::current_exception();
      continue;
    }
    copy(file, *read);
    if (trust_.holds()) trust_.read();
  }
}

bool CachedMappedChannel::may_read(const std::byte* file, std::span<Read* const> run) {
  if (trust_.holds()) {
    trust_.read();
    return true;
  }
  const bool there = are_in_memory(pages_of(file, run.front()->offset, run_bytes(run)));
  there ? trust_.hit() : trust_.miss();
  return there;
}

void CachedMappedChannel::read_run(std::span<Read* const> run) {
  const FdPin* pin = is_inside(run) ? files_.hold_open(*run.front()->file) : nullptr;
  if (pin == nullptr || !may_read(pin->bytes(), run)) return leave_all(run);
  for (const Read* read : run) copy(pin->bytes(), *read);
}

}  // namespace penstock
