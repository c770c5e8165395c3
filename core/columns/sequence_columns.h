// Sequence columns: what attention over several documents in one row needs; int32, of the flattened records of a batch,
// its lookahead left out.
//
//   cu_seqlens    [documents + 1]: 0, then where each sequence ends. With max_documents it is [max_documents + 1],
//                 padded with its last value. Padding rows of fixed length are a sequence each.
//   max_seqlen    []: records of the longest sequence
//   position_ids  [rows, length], or [records] if ragged: place in its sequence
//   document_ids  the same shape: number of the sequence in the batch; -1 in padding rows
#pragma once

#include "core/columns/column.h"
#include "core/columns/column_spec.h"

#include <memory>

namespace penstock {

/// Throws as Sequences does, and InvalidArgument for a row without records to count.
std::shared_ptr<const Column> make_sequence_column(const SequenceSpec& spec, const SourceInfo& source);

}  // namespace penstock
