// Any bytes as the job of a saved state: compared or refused with penstock::Error.
#include "core/base/error.h"
#include "core/job/state.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The first half stands for what a checkpoint holds, the second for the job that runs; and each for both.
  const std::string_view halves[] = {text.substr(0, size / 2), text.substr(size / 2), text};
  for (const std::string_view saved : halves) {
    try {
      penstock::job_difference(saved, halves[1], size);
    } catch (const penstock::Error&) {
    }
  }
  return 0;
}
