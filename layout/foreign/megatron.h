// Megatron's .bin + .idx pairs: what stays in memory of an .idx once it is opened.
//
// Opening streams the whole .idx once: for the fingerprint, and to check it. A sample of where documents begin is kept,
// so that finding those of a window reads two bounded blocks, not a search; documents may have many sequences.
// Immutable; any thread. The .idx: "MMIDIDX\0\0", version u64, dtype u8, S u64, D u64, then unaligned i32 lengths[S],
// i64 pointers[S] (bytes in the .bin), i64 document_indices[D] (the sequence at which each document begins, then S).
#pragma once

#include "core/rows/schema.h"
#include "layout/dataset/digest.h"
#include "layout/foreign/foreign_file.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::layout {

/// Where document `document` begins.
struct MegatronSample {
  std::uint64_t document = 0;
  std::uint64_t sequence = 0;
  std::uint64_t token = 0;

  bool operator==(const MegatronSample&) const = default;
};

struct MegatronIndex {
  /// A block of samples is closed once it has this many documents or sequences: a window reads that much around it.
  static constexpr std::uint64_t kBlockDocuments = 1024;
  static constexpr std::uint64_t kBlockSequences = 8192;

  const char* type = "";  // NumPy's: "<u2"
  std::uint64_t item_bytes = 0;
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;
  std::uint64_t tokens = 0;
  std::uint64_t pointers_offset = 0;
  std::uint64_t documents_offset = 0;
  std::vector<MegatronSample> samples;  // the first is all 0, the last (documents, sequences, tokens)
};

/// Reads and checks the whole of `idx` against a .bin of `bin_bytes`, and adds its content to `digest`. Throws
/// Corruption (wrong magic, truncated, counts, lengths or pointers that cannot be) and InvalidArgument (a version, type
/// or kind of data that penstock does not read).
MegatronIndex scan_megatron_index(const ForeignFile& idx, std::uint64_t bin_bytes, Digest& digest);

/// "corpus_text_document", also of the name of its .bin or .idx.
std::string megatron_prefix(const std::string& path);

struct Shard;

/// The token at which the sequence that an .idx pointer belongs to begins. Throws Corruption if it is not inside the
/// shard or no whole number of tokens (the .idx changed after it was opened).
std::uint64_t megatron_token(const Shard& shard, const std::byte* pointer);

}  // namespace penstock::layout
