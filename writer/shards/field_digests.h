// FieldDigests: the digest of each field's values, taken from records as they pass by.
//
// A leaf's digest is over its values in stream order, little-endian and packed, so it does not depend on the other
// fields nor on the layout. One thread at a time.
#pragma once

#include "core/rows/schema.h"
#include "layout/dataset/digest.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::writer {

class FieldDigests {
 public:
  FieldDigests(const Schema& schema, std::uint64_t stored_record_bytes);

  /// Whole stored records, the next of the stream.
  void update(std::span<const std::byte> records);

  /// In the order of the schema's leaves.
  [[nodiscard]] layout::FieldDigestList digests() const;

 private:
  struct Piece {
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  struct Field {
    std::vector<Piece> pieces;  // of one record, in the order of the values
    Digest digest;
  };
  void gather(const Field& field, std::span<const std::byte> records);

  std::uint64_t record_bytes_;
  bool whole_;  // one field that is the whole record: nothing to gather
  std::vector<Field> fields_;
  std::vector<std::byte> values_;
};

}  // namespace penstock::writer
