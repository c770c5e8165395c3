// Any bytes as the job of a saved state, and as the job that runs.
#include "core/job/state.h"

#include "shuffle/mixture_difference.h"
#include "tests/fuzz/targets.h"
#include "tests/native/core/job/saved_job.h"

#include <cstdint>

namespace penstock::fuzz {

bool state(Input input) {
  // Up to the first zero what a checkpoint holds, then the job that runs; and each for both.
  const auto [before, behind] = split_at_zero(input);
  const std::string_view saved = before;
  const std::string_view running = behind.empty() ? saved : view_of(behind);
  const nlohmann::json now = nlohmann::json::parse(running, nullptr, false);
  if (!now.is_object() || !now.contains("order") || !now["order"].is_object()) return false;
  const std::string identity = now["order"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  bool some = false;
  for (const std::string_view text : {saved, running}) {
    for (const bool is_mixture : {false, true}) {
      testing::CompareTexts compare;
      if (is_mixture) compare = shuffle::mixture_difference;
      some |= accepts([&] { job_difference(text, running, testing::TextOrder(identity, compare), input.size()); });
    }
  }
  return some;
}

}  // namespace penstock::fuzz
