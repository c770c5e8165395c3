// What a loader wants of every batch: columns by the names of fields, before any source is known.
//
// core/columns/column_factory.h resolves one for a source: its schema says where the field lies. Values; any thread.
#pragma once

#include "core/columns/column_maker.h"
#include "core/columns/record_array.h"
#include "core/rows/scalar_type.h"
#include "core/rows/source.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace penstock {

/// A field's values as `type`, from record `skip` of each row; `shorten` records fewer than the row has (inputs: skip
/// 0, shorten 1; labels: skip 1, shorten 1; a field itself: 0, 0). [rows, length, dims…], or [records, dims…] if
/// ragged.
struct FieldSpec {
  std::string name;   // of the array, for messages
  std::string field;  // "token", "a.b"
  ScalarType type;
  std::uint64_t skip = 0;
  std::uint64_t shorten = 0;
  bool labels = false;  // padding is -100, which torch's cross_entropy ignores, instead of 0
};

/// Where the documents of a row begin, besides its first record.
struct DocumentBounds {
  enum class By {
    Spans,       // where a span does
    EndValue,    // after each record whose `field` has `value`
    BeginValue,  // at each record whose `field` has `value`
  };
  By by = By::Spans;
  std::string field = {};
  std::int64_t value = 0;
};

/// The sequences that a batch's flattened records consist of. A sequence begins where a row and where a document does.
struct SequenceSpec {
  enum class Kind {
    Bounds,     // cu_seqlens: where sequences begin, and the last one's end
    Longest,    // max_seqlen: records of the longest
    Positions,  // position_ids: of each record, its place in its sequence
    Documents,  // document_ids: of each record, the number of its sequence in the row; -1 in padding
  };
  Kind kind = Kind::Bounds;
  std::uint64_t shorten = 0;  // records at the end of each row that do not count: the lookahead
  DocumentBounds bounds = {};
  // Bounds: the array has one value more, whatever the batch holds. Longest: of fixed rows, it is the row.
  std::optional<std::uint64_t> max_documents = {};
};

/// Which targets count, and labels that are -100 at those that do not. The target of a record is the next one of its
/// row, or of its lookahead; the last record of a row without lookahead has none. In packed rows, whose spec says
/// cross_document=false, that is so of each piece.
struct TargetSpec {
  std::optional<FieldSpec> labels = {};  // the targets themselves, as this field's …
  bool mask = false;                     // … and loss_mask, a bool for each record: whether its target counts
  std::uint64_t shorten = 0;             // the lookahead
  std::vector<std::string> fields = {};  // a target counts only where none of them is 0 …
  bool cross_document = true;            // … and, if false, only in the document of its record
  DocumentBounds bounds = {};            // of those documents
  std::optional<Padding> padding = {};   // of documents: both are [rows, T]
};

/// A value of each span, spread over its records once the batch is ready (core/batch/span_values.h).
struct PerSpanSpec {
  std::string name;
  ScalarType type;
  std::uint64_t fill = 0;  // where there is no span: the bytes of a value, the rest 0
  std::uint64_t shorten = 0;
  std::optional<Padding> padding = {};  // of documents: it is [rows, T]
};

/// The value `name` of each row's document.
struct ValueSpec {
  std::string name;
};

/// What only its maker knows.
using MadeSpec = std::shared_ptr<const ColumnMaker>;

using ColumnSpec = std::variant<FieldSpec, SequenceSpec, TargetSpec, PerSpanSpec, ValueSpec, MadeSpec>;

/// Whether the column has a value for each record of a row, or several, so that a part of a row has a part of it.
bool is_of_records(const ColumnSpec& spec) noexcept;

/// How many records after a part of a row the column's part is made of, too: what a field skips, or the last target.
std::uint64_t records_after(const ColumnSpec& spec) noexcept;

/// What of a row the column needs besides the records that a batch has in any case.
Parts parts_of(const ColumnSpec& spec) noexcept;

}  // namespace penstock
