// Values as Python's json and msgpack write them, byte for byte. Any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::text {

using ByteVector = std::vector<std::uint8_t>;

inline void put_bytes(ByteVector& out, std::string_view bytes) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  out.insert(out.end(), data, data + bytes.size());
}

/// Decimals.
void put_integer(ByteVector& out, std::int64_t value);
void put_integer(ByteVector& out, std::uint64_t value);
/// repr() of a finite float: the fewest digits that give it again, with an exponent from 1e16 on and below 1e-4.
void put_float(ByteVector& out, double value);
/// Valid UTF-8 in quotation marks, as json.dumps(…, ensure_ascii=False) has it: quotation marks, backslashes and
/// control characters below 0x20 are escaped.
void put_json_string(ByteVector& out, std::string_view utf8);
/// The same, as json.dumps() has it: all but printable ASCII is escaped, in UTF-16.
void put_ascii_json_string(ByteVector& out, std::string_view utf8);

/// msgpack.packb(…, use_bin_type=True): the shortest form there is; sizes are below 2^32.
void put_packed(ByteVector& out, std::int64_t value);
void put_packed(ByteVector& out, std::uint64_t value);
void put_packed(ByteVector& out, double value);
void put_packed(ByteVector& out, std::string_view utf8);
void put_packed_array_head(ByteVector& out, std::uint64_t size);
void put_packed_map_head(ByteVector& out, std::uint64_t size);

}  // namespace penstock::text
