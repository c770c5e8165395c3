#include "core/io/local/mapped_channel.h"

#include "core/base/error.h"
#include "core/io/local/file_reads.h"

#include <sys/mman.h>
#include <sys/resource.h>
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

std::int64_t major_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_majflt;
}

}  // namespace

void MappedChannel::asked(bool hit) noexcept {
  hits_ = hit ? hits_ + 1 : 0;
  if (hits_ == kEnoughHits) faults_ = major_faults();
}

void MappedChannel::check_faults() noexcept {
  if (assumes() && major_faults() != faults_) hits_ = 0;
}

void MappedChannel::prepare(std::span<Read* const> reads) {
  if (mode_ == ChannelMode::NonBlocking) return check_faults();
  while (!reads.empty() && !assumes()) {
    const std::span<Read* const> run = reads.first(run_length(reads));
    if (!ReadQueue::are_cancelled(run)) ask_for(run);
    reads = reads.subspan(run.size());
  }
}

// Advice: an error of the file or the range is reported where it is read.
void MappedChannel::ask_for(std::span<Read* const> run) {
  if (!is_inside(run)) return;
  OpenFile file;
  try {
    file = files_.hold(*run.front()->file, false).open();
  } catch (...) {
    return;
  }
  Pages pages = pages_of(file, run);
  if (file.tells && are_in_memory(pages)) return asked(true);
  while (pages.bytes > 0) {
    const Pages part = pages.take(kAskedAtOnce);
    (void)::madvise(part.begin, part.bytes, MADV_WILLNEED);
  }
  asked(!file.tells);  // of a file that does not tell, all may have been there: a fault will show if not
}

bool MappedChannel::may_copy(const OpenFile& file, std::span<Read* const> run) {
  if (!assumes()) asked(file.tells && are_in_memory(pages_of(file, run)));
  return hits_ > 0;
}

void MappedChannel::read_run(std::span<Read* const> run) {
  if (mode_ == ChannelMode::NonBlocking) {
    const FdPin* pin = is_inside(run) ? files_.hold_open(*run.front()->file) : nullptr;
    if (pin == nullptr || !may_copy(pin->open(), run)) return leave_all(run);
    for (const Read* read : run) copy(pin->open(), *read);
    return;
  }
  const OpenFile& file = files_.hold(*run.front()->file).open();
  for (Read* read : run) {
    try {
      check_range(*read);
    } catch (...) {
      read->fail(present_error());
      continue;
    }
    copy(file, *read);
    if (assumes() && ++unasked_ % kCheckEvery == 0) check_faults();
  }
}

}  // namespace penstock
