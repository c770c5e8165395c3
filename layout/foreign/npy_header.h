// The header of a real .npy file: a Python literal that says type and shape (NumPy's NEP 1).
//
// Pure function; any thread; the bytes are untrusted.
#pragma once

#include "core/rows/schema.h"
#include "layout/foreign/foreign_file.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace penstock::layout {

struct NpyHeader {
  std::string descr_json;         // the schema's JSON form; a plain array has the one field "token"
  std::uint64_t count = 0;        // elements
  std::uint64_t data_offset = 0;  // of the first
};

/// Whether a file with these first bytes is a real .npy file (OLMo's, of the same name, are bare).
bool is_npy(std::span<const std::byte> head);

/// Throws Corruption (truncated, not a header), InvalidArgument (an unknown version, not one-dimensional).
NpyHeader read_npy_header(const ForeignFile& file);

}  // namespace penstock::layout
