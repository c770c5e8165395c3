// One uncompressed MDS shard: where the tokens of each of its samples lie.
//
// u32 samples; u32 offsets[samples + 1], bytes of the shard; a JSON text; the samples. A sample: for each column of no
// fixed size a u32, its bytes; then the columns' bytes, in the order of their names. An array has before its values 1
// byte of its type, if the column says none, then 1 byte (axes << 2 | log2 of the bytes of a length) and the lengths,
// if the column says no shape. Any thread. What it reads is untrusted.
#pragma once

#include "core/rows/scalar_type.h"
#include "layout/documents/document_table.h"
#include "layout/foreign/foreign_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::layout {

/// A column's encoding as index.json has it, as far as tokens need it.
struct MdsColumn {
  std::string name;
  std::string encoding;
  std::optional<std::uint64_t> bytes;  // where they are the same in all samples
};

struct MdsTokens {
  std::vector<MdsColumn> columns;
  std::size_t column = 0;  // that has the tokens
  ScalarType type;         // of a token
  bool is_array = false;   // ndarray, else bare bytes
  bool says_type = false;  // each array says its type, which must be `type`
  bool says_shape = false;
};

/// Reads the offsets of all samples, and where these do not tell where tokens lie, the head of each sample. Throws
/// Corruption, InvalidArgument (an array of another type).
DocumentTable scan_mds_shard(const ForeignFile& file, const MdsTokens& tokens, std::uint64_t samples, Digest& digest);

/// NumPy's type of MDS's number for it; nullopt for floats and unknown numbers.
std::optional<ScalarType> mds_type(unsigned code);

}  // namespace penstock::layout
