// Job: all that decides what stands at a position, as canonical JSON; and the state that a checkpoint keeps.
//
// The state is {"version": 1, "position": P, "job": "<canonical JSON>"}: three keys for ever; growth happens inside
// job. Thread rule: values, any thread.
#pragma once

#include "core/batch/source.h"
#include "core/job/order.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock {

inline constexpr std::uint64_t kStateVersion = 1;

struct State {
  std::uint64_t version = kStateVersion;
  std::uint64_t position = 0;
  std::string job;
};

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// Canonical JSON (sorted keys, no spaces) of the job: format, for each source its dataset (fingerprint, shards,
/// records) and view (Source::identity), order (Order::identity(kNever)), skip (sorted, merged).
std::string job_json(const Order& order, const std::vector<std::shared_ptr<const Source>>& sources, const Ranges& skip);

/// Why a state saved with `saved` job at `position` cannot go on with job `current`: in words that name what differs
/// (dataset with fingerprints, shard and record counts; seed; order; window), or none if it can. What lies at or after
/// `position` (skips, stages) is no difference. `saved` is untrusted: throws StateMismatch if it is not a job of a
/// known format, InvalidArgument if it is no JSON.
std::optional<std::string> job_difference(std::string_view saved, std::string_view current, std::uint64_t position);

}  // namespace penstock
