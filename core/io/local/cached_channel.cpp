#include "core/io/local/cached_channel.h"

#include "core/io/local/file_reads.h"

namespace penstock {
namespace {

struct NotCached {};

// What is wrong with a file or a range is found, and told, by who reads it in earnest.
bool read_cached(ChannelFiles& files, std::span<Read* const> run) {
  if (!is_inside(run)) return false;
  const FdPin* pin = files.hold_open(*run.front()->file);
  if (pin == nullptr) return false;
  Pieces pieces;
  const std::size_t count = fill_pieces(run, 0, pieces);
  const ssize_t got =
      ::preadv2(pin->fd(), pieces.data(), static_cast<int>(count), static_cast<off_t>(run.front()->offset), RWF_NOWAIT);
  return got >= 0 && static_cast<std::uint64_t>(got) == run_bytes(run);
}

}  // namespace

const std::exception_ptr& not_cached() {
  static const std::exception_ptr error = std::make_exception_ptr(NotCached());
  return error;
}

std::unique_ptr<Channel> ByteStore::open_cached_channel(Reader /*reader*/) {
  return std::make_unique<NothingCached>();
}

void leave_all(std::span<Read* const> run) {
  for (Read* read : run) read->error = not_cached();
}

void CachedChannel::read_run(std::span<Read* const> run) {
  if (!read_cached(files_, run)) leave_all(run);
}

void NothingCached::read_run(std::span<Read* const> run) {
  leave_all(run);
}

}  // namespace penstock
