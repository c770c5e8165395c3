// CRC32C (Castagnoli): the check value of the 4 KiB blocks of every file of a shard, and of the manifest.
//
// Thread rule: pure functions; any thread. Uses SSE4.2 where the processor has it, a table elsewhere; both give the
// same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// CRC32C of `bytes`, going on from `crc` (0 at the start): crc32c(b, crc32c(a)) is that of a and b end to end.
/// "123456789" gives 0xe3069283.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

/// The same by table alone: what crc32c() falls back to.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t crc = 0) noexcept;

/// Appends the CRC32C of each `block` bytes, the last of which may be fewer: three blocks at a time, since the
/// processor's instruction takes three cycles and may begin in each. Any thread. Throws std::bad_alloc.
void crc32c_blocks(std::span<const std::byte> bytes, std::size_t block, std::vector<std::uint32_t>& out);

}  // namespace penstock
