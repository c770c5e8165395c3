// Runs of casts: `count` scalars that lie `stride` bytes apart become another type, written densely. The innermost loop
// of every array that the native threads make, so it is compiled for AVX2 too, and the form is chosen at run time.
//
// Pure functions: any thread.
#pragma once

#include "core/rows/scalar_type.h"

#include <cstddef>
#include <cstdint>

namespace penstock {

/// False if a value does not fit (the others are written all the same). `item_bytes` is the size of a scalar where it
/// is copied as it is.
using CastRun = bool (*)(const std::byte* in, std::uint64_t stride, std::uint64_t count, std::byte* out,
                         std::uint64_t item_bytes);

/// The run that makes `to` of `from` on this machine; null if that is no cast we make.
CastRun find_cast_run(ScalarType from, ScalarType to);

/// Its forms. The second one only where the processor has AVX2.
CastRun find_cast_run_generic(ScalarType from, ScalarType to);
CastRun find_cast_run_avx2(ScalarType from, ScalarType to);

}  // namespace penstock
