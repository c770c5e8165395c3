// ScalarType: the type of one value of an array. A value; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

/// A scalar type in NumPy's terms: kind (b i u f c S V) and size. Little-endian.
struct ScalarType {
  char kind = 'i';
  std::uint32_t bytes = 8;
  bool operator==(const ScalarType&) const = default;
  /// "<i8", "|u1", "|S16".
  [[nodiscard]] std::string str() const;
  /// "int64", "uint16", "float32", "bool", else str(): for messages.
  [[nodiscard]] std::string name() const;
  static ScalarType parse(const std::string& text);  // also "int32", "float16", "bool"; throws InvalidArgument
};

}  // namespace penstock
