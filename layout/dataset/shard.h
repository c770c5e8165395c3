// Shard: one shard of an opened dataset, or one foreign file, as a table says it; no file is open. A value.
#pragma once

#include "core/io/file.h"
#include "layout/dataset/digest.h"
#include "layout/values/column_types.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace penstock::layout {

/// What is compared with its check values when it is read. Beside it, each file's first reads of a shard are.
enum class Checks : std::uint8_t {
  None,   // nothing at all
  Index,  // what tells where spans and entries lie: metadata.index, metadata.directory
  All,    // records and entries as well
};

struct MegatronIndex;  // megatron.h
struct FieldArrays;    // field_arrays.h
class DocumentBounds;  // document_bounds.h
class DocumentTable;   // document_table.h

/// One shard, or one foreign file: `records` records of the stream from byte `stream_offset` of `stream`.
struct Shard {
  std::string name;  // for messages: "00012", "tokens/a.bin"
  std::uint64_t records = 0;
  std::uint64_t spans = 0;    // spans (documents) of the shard
  std::uint64_t entries = 0;  // metadata entries; equals spans but in the ids layout
  File stream;
  std::uint64_t stream_offset = 0;
  Checks checks = Checks::None;  // foreign files have no check values
  File index;                    // metadata.index, Megatron's .idx, or what else says where documents begin
  File directory;                // metadata.directory (compact)
  File data;                     // metadata.bin
  File columns;                  // columns.bin; datatrove's .ds.loss, the second field
  // Ours only, what the fingerprint is made of: the digests of each visible field's values, in the schema's order of
  // leaves; that of span lengths and entry bytes (none without metadata).
  FieldDigestList field_digests;
  std::optional<DigestBytes> span_digest;
  std::shared_ptr<const ShardColumns> shard_columns;  // null without columns
  // Megatron only: where the arrays lie in the .idx and a sparse sample that bounds every search.
  std::shared_ptr<const MegatronIndex> megatron;
  // Field arrays only: where they lie in `stream`.
  std::shared_ptr<const FieldArrays> arrays;
  // Bounds only, one of them. A table that knows bytes says where the records lie in `stream`, in pieces.
  std::shared_ptr<const DocumentBounds> bounds;
  std::shared_ptr<const DocumentTable> table;
};

}  // namespace penstock::layout
