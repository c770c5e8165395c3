// Python's integers as the native code takes them.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>

namespace penstock::bindings {

/// A Python integer (or what has __index__) in [0, 2^64); `name` is the argument that an error speaks of. Throws
/// InvalidArgument for one outside.
std::uint64_t to_u64(const pybind11::handle& value, const char* name);

}  // namespace penstock::bindings
