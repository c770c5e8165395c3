#include "core/rows/row_slice.h"

#include "core/base/error.h"

namespace penstock {
namespace {

constexpr ErrorKind kKind = ErrorKind::InvalidArgument;

}  // namespace

RowSlice::RowSlice(const Spec& spec, const SourceInfo& source, std::uint64_t lookahead)
    : spec_(spec),
      window_(source.shape.length - std::min(lookahead, source.shape.length)),
      multiple_(std::max<std::uint64_t>(source.packed_multiple, 1)),
      is_packed_(source.packed_multiple > 0) {
  if (spec_.rank >= spec_.size) {
    raise(kKind, "context_parallel: rank {} of size {}: ranks go from 0 to size - 1", with_commas(spec_.rank),
          with_commas(spec_.size));
  }
  if (source.shape.ragged) {
    raise(kKind, "context_parallel: {}: documents have no window that ranks could share: use windows(…) or packed(…)",
          source.path);
  }
  std::uint64_t chunks = spec_.size;
  if (spec_.layout != Layout::Contiguous && __builtin_mul_overflow(chunks, 2, &chunks)) chunks = UINT64_MAX;
  if (window_ % chunks != 0) {
    raise(kKind, "context_parallel: a window of {} is no multiple of {}: use one of {}", with_commas(window_),
          with_commas(chunks), with_commas((window_ / chunks + 1) * chunks));
  }
  if (!is_by_documents()) return;
  if (source.packed_multiple == 0) {
    raise(kKind,
          "context_parallel: the layout \"zigzag-documents\" is of packed rows: use packed(…, multiple_of={}), or "
          "\"zigzag\"",
          with_commas(chunks));
  }
  if (source.packed_multiple % chunks == 0) return;
  raise(kKind,
        "context_parallel: documents that take multiples of {} records have no {} equal chunks each: use packed(…, "
        "multiple_of={})",
        with_commas(source.packed_multiple), with_commas(chunks), with_commas(chunks));
}

RowSlice RowSlice::reading_after(std::uint64_t records) const {
  RowSlice slice = *this;
  slice.after_ = records;
  return slice;
}

}  // namespace penstock
