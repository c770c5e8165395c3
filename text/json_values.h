// Values that simdjson read, written as Python writes what json.loads() makes of the same text. Any thread.
#pragma once

#include "text/written.h"

#include <simdjson.h>

namespace penstock::text {

/// A value of the type that it is known to have.
template <typename T>
T known_as(simdjson::dom::element value) {
  T found{};
  return value.get(found) == simdjson::SUCCESS ? found : T{};
}

/// json.dumps(value, ensure_ascii=False, separators=(",", ":"))
void put_json_value(ByteVector& out, simdjson::dom::element value);
/// msgpack.packb(value, use_bin_type=True)
void put_packed_value(ByteVector& out, simdjson::dom::element value);

}  // namespace penstock::text
