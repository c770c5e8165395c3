#include "core/io/local/pread_channel.h"

#include "core/io/local/file_reads.h"

namespace penstock {
namespace {

/// True if all of the run's bytes came with one call.
bool read_merged(int fd, std::span<Read* const> run) {
  Pieces pieces;
  const std::size_t count = fill_pieces(run, 0, pieces);
  const ssize_t got = ::preadv(fd, pieces.data(), static_cast<int>(count), static_cast<off_t>(run.front()->offset));
  return got >= 0 && static_cast<std::uint64_t>(got) == run_bytes(run);
}

}  // namespace

void PreadChannel::read_run(std::span<Read* const> run) {
  if (mode_ == ChannelMode::NonBlocking) return read_at_hand(run);
  const FdPin& pin = files_.hold(*run.front()->file);
  // One by one: a single read, or a run that was cut short, whose error belongs to the reads that it hit alone.
  if (run.size() == 1 || !is_inside(run) || !read_merged(pin.fd(), run)) read_each(pin.fd(), run);
}

// Reads of a wrong file or range are left as well: the channel that may wait reports the error.
void PreadChannel::read_at_hand(std::span<Read* const> run) {
  const FdPin* pin = is_inside(run) ? files_.hold_open(*run.front()->file) : nullptr;
  if (pin == nullptr || read_cached(pin->fd(), run) != run_bytes(run)) leave_all(run);
}

}  // namespace penstock
