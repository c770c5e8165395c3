#include "core/io/local/mapped_channel.h"

#include "core/io/local/cached_channel.h"
#include "core/io/local/file_reads.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace penstock {
namespace {

// The kernel reads no more than the device's largest request for one advice; 128 KiB is the least that is usual.
constexpr std::size_t kAskedAtOnce = 128 << 10;

struct Pages {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;

  Pages take(std::size_t most) {
    const Pages taken{begin, std::min(bytes, most)};
    begin += taken.bytes;
    bytes -= taken.bytes;
    return taken;
  }
};

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// The pages that a run touches.
Pages pages_of(const OpenFile& file, std::span<Read* const> run) {
  const std::uint64_t begin = run.front()->offset / page_bytes() * page_bytes();
  return {const_cast<std::byte*>(file.bytes) + begin, run.front()->offset - begin + run_bytes(run)};
}

// Whether a read of them waits for no device, of a file that tells.
bool are_in_memory(Pages pages) {
  std::array<unsigned char, 64> states;
  while (pages.bytes > 0) {
    const Pages part = pages.take(states.size() * page_bytes());
    if (::mincore(part.begin, part.bytes, states.data()) != 0) return false;
    const auto end = states.begin() + static_cast<std::ptrdiff_t>((part.bytes + page_bytes() - 1) / page_bytes());
    if (!std::all_of(states.begin(), end, [](unsigned char state) { return (state & 1U) != 0; })) return false;
  }
  return true;
}

void copy(const OpenFile& file, const Read& read) {
  if (read.size > 0) std::memcpy(read.destination, file.bytes + read.offset, read.size);
}

}  // namespace

void MappedChannel::prepare(std::span<Read* const> reads) {
  while (!reads.empty() && !trust_.holds()) {
    const std::span<Read* const> run = reads.first(run_length(reads));
    if (!ReadQueue::are_cancelled(run)) ask_for(run);
    reads = reads.subspan(run.size());
  }
}

// Advice: what is wrong with the file or the range is told where it is read.
void MappedChannel::ask_for(std::span<Read* const> run) {
  if (!is_inside(run)) return;
  OpenFile file;
  try {
    file = files_.hold(*run.front()->file, false).open();
  } catch (...) {
    return;
  }
  Pages pages = pages_of(file, run);
  if (file.tells && are_in_memory(pages)) return trust_.hit();
  while (pages.bytes > 0) {
    const Pages part = pages.take(kAskedAtOnce);
    (void)::madvise(part.begin, part.bytes, MADV_WILLNEED);
  }
  // Of a file that does not tell, all may have been there; if not, reads that are trusted find out.
  file.tells ? trust_.miss() : trust_.hit();
}

void MappedChannel::read_run(std::span<Read* const> run) {
  const OpenFile& file = files_.hold(*run.front()->file).open();
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

void CachedMappedChannel::prepare(std::span<Read* const> /*reads*/) {
  trust_.check();
}

bool CachedMappedChannel::may_read(const OpenFile& file, std::span<Read* const> run) {
  if (trust_.holds()) return true;
  const bool there = file.tells && are_in_memory(pages_of(file, run));
  there ? trust_.hit() : trust_.miss();
  return there;
}

void CachedMappedChannel::read_run(std::span<Read* const> run) {
  const FdPin* pin = is_inside(run) ? files_.hold_open(*run.front()->file) : nullptr;
  if (pin == nullptr || !may_read(pin->open(), run)) return leave_all(run);
  for (const Read* read : run) copy(pin->open(), *read);
}

}  // namespace penstock
