// Any bytes as a condition: refused with penstock::Error, or its text is a condition that has the same text.
#include "core/base/error.h"
#include "layout/where/condition.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text;
  try {
    text = penstock::layout::condition_text(
        penstock::layout::parse_condition({reinterpret_cast<const char*>(data), size}));
  } catch (const penstock::Error&) {
    return 0;
  }
  if (penstock::layout::condition_text(penstock::layout::parse_condition(text)) != text) std::abort();
  return 0;
}
