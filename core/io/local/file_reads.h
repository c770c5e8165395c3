// What all channels of local files share: which reads are neighbours, and reading one to its end, errors in words.
#pragma once

#include "core/io/read.h"

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock {

/// Neighbours are merged into one system call up to these bounds. At 1 MiB the call's own cost (below a microsecond) is
/// under 1 % of the copy, so more gains nothing; 64 pieces keep the vector in 1 KiB, far below IOV_MAX (1,024).
inline constexpr std::size_t kMaxPieces = 64;
inline constexpr std::uint64_t kMaxRunBytes = 1U << 20;

using Pieces = std::array<iovec, kMaxPieces>;

/// How many reads from the front on are neighbours in one file; at least 1.
std::size_t run_length(std::span<Read* const> reads);

/// Destinations of a run's reads from byte `skip` of the run on; returns how many pieces there are.
std::size_t fill_pieces(std::span<Read* const> run, std::uint64_t skip, Pieces& pieces);

/// Bytes of a run.
std::uint64_t run_bytes(std::span<Read* const> run);

/// Whether all of a run's bytes lie inside the file.
bool is_inside(std::span<Read* const> run);

/// Throws Corruption if the read passes the end of its file.
void check_range(const Read& read);

/// Throws Corruption: the file ends where it should not.
[[noreturn]] void refuse_end(int fd, const Read& read);

/// All of one read by pread, again after EINTR and short reads. Throws Corruption where the range or the file ends
/// early, IoError of the system.
void read_fully(int fd, Read& read);

/// The same for each read of a run; an error belongs to the read that it hit and is kept there.
void read_each(int fd, std::span<Read* const> run) noexcept;

/// Reads a run inside its file without waiting for the device (RWF_NOWAIT); returns how many bytes from its front on
/// were in the page cache and are at their destinations now.
std::uint64_t read_cached(int fd, std::span<Read* const> run) noexcept;

/// The present exception is the error of all of them.
void fail_all(std::span<Read* const> run) noexcept;

/// All of them end NotAtHand.
void leave_all(std::span<Read* const> run) noexcept;

}  // namespace penstock
