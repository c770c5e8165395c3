#include "core/columns/cells/sentences.h"

#include "core/base/checked.h"

namespace penstock::cells {

std::uint64_t Sentences::bytes(const BatchShape& batch, unsigned arrays) const {
  constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
  const std::uint64_t tokens = checked_mul(batch.rows, spec_->length, "tokens of a batch", kKind);
  return checked_mul(tokens, std::uint64_t{arrays} * sizeof(std::int64_t), "bytes of a column", kKind);
}

}  // namespace penstock::cells
