// Schema: the fields of one record, as NumPy's structured dtype describes them.
//
// Records are packed (no padding) and little-endian. The text form is NumPy's `dtype.descr` as JSON:
//   [["token", "<u4"]]                                   one field
//   [["a", "<u2"], ["b", [["x", "<f4"], ["y", "|u1", [3]]]], ["c", "<f4", [2, 2]]]   nested and sub-array fields
// A schema is flattened to leaves: "b.x" is one leaf; dims and strides say how a leaf repeats inside one record.
// Thread rule: immutable after parsing; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

/// One scalar field of a record, possibly repeated by sub-arrays around it.
struct Leaf {
  std::string name;                         // "token", "a.b"
  char kind = 'u';                          // NumPy's kind: b i u f c S V
  std::uint32_t item_bytes = 0;             // of one scalar
  std::uint64_t offset_bytes = 0;           // in the record
  std::vector<std::uint64_t> dims;          // trailing axes; empty for a scalar
  std::vector<std::uint64_t> stride_bytes;  // of each of dims

  [[nodiscard]] bool is_integer() const noexcept { return kind == 'i' || kind == 'u'; }
  /// Scalars in one record: the product of dims, 1 for a scalar.
  [[nodiscard]] std::uint64_t count() const noexcept;
};

class Schema {
 public:
  Schema() = default;

  /// Parses the JSON form above. Throws InvalidArgument for what it refuses: an unknown or object kind, a big-endian
  /// field, a zero size, a duplicate or empty name, a name with '.', more than 1 MiB a record, no fields.
  static Schema parse(std::string_view json);

  [[nodiscard]] const std::vector<Leaf>& leaves() const noexcept { return leaves_; }
  [[nodiscard]] std::uint64_t record_bytes() const noexcept { return record_bytes_; }
  /// Canonical JSON: what parse() takes, without spaces. Equal schemas give equal text.
  [[nodiscard]] const std::string& json() const noexcept { return json_; }
  /// Position in leaves(), or -1.
  [[nodiscard]] int find(std::string_view name) const noexcept;

 private:
  std::vector<Leaf> leaves_;
  std::uint64_t record_bytes_ = 0;
  std::string json_ = "[]";
};

}  // namespace penstock
