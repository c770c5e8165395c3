// Any bytes as the job of a saved state: compared or refused with penstock::Error.
#include "core/base/error.h"
#include "core/job/state.h"
#include "shuffle/mixture_difference.h"
#include "tests/native/core/job/saved_job.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The first half stands for what a checkpoint holds, the second for the job that runs; and each for both.
  const std::string_view halves[] = {text.substr(0, size / 2), text.substr(size / 2), text};
  const nlohmann::json now = nlohmann::json::parse(halves[1], nullptr, false);
  if (!now.is_object() || !now.contains("order") || !now["order"].is_object()) return 0;
  const std::string identity = now["order"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (const std::string_view saved : halves) {
    for (const bool is_mixture : {false, true}) {
      penstock::testing::CompareTexts compare;
      if (is_mixture) compare = penstock::shuffle::mixture_difference;
      try {
        penstock::job_difference(saved, halves[1], penstock::testing::TextOrder(identity, compare), size);
      } catch (const penstock::Error&) {
      }
    }
  }
  return 0;
}
