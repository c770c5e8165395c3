// The batched form of algorithm 1's Feistel network, compiled three times from one source (kernel.inl).
//
// A kernel makes one pass without walking; the caller walks the rare index that ended outside [0, N). Plain data and
// pure functions: any thread. Only kernel_*.cpp and dispatch.cpp need this file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::shuffle {

inline constexpr unsigned kKernelRounds = 8;
/// Indices of one call; two planar arrays of them stay in the first-level cache.
inline constexpr std::size_t kKernelBlock = 256;

struct KernelInput {
  std::uint64_t size = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  double reciprocal_b = 0;
  std::uint32_t low[kKernelRounds] = {};
  std::uint32_t high[kKernelRounds] = {};
};

/// Sends `count` <= kKernelBlock indices, each below input.size, through all rounds once; `in` may be `out`. Returns
/// whether some result is >= input.size.
using KernelPass = bool (*)(const KernelInput& input, const std::uint64_t* in, std::uint64_t* out, std::size_t count);

bool forward_generic(const KernelInput& input, const std::uint64_t* in, std::uint64_t* out, std::size_t count);
bool inverse_generic(const KernelInput& input, const std::uint64_t* in, std::uint64_t* out, std::size_t count);
bool forward_avx2(const KernelInput& input, const std::uint64_t* in, std::uint64_t* out, std::size_t count);
bool inverse_avx2(const KernelInput& input, const std::uint64_t* in, std::uint64_t* out, std::size_t count);
bool forward_avx512(const KernelInput& input, const std::uint64_t* in, std::uint64_t* out, std::size_t count);
bool inverse_avx512(const KernelInput& input, const std::uint64_t* in, std::uint64_t* out, std::size_t count);

}  // namespace penstock::shuffle
