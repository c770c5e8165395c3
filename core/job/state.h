// State: what a checkpoint keeps of a job, and whether one that was saved is of the job that runs now.
//
// The state is {"version": 1, "position": P, "job": "<canonical JSON>"}: three keys for ever; growth happens inside
// job. Thread rule: values and pure functions, any thread.
#pragma once

#include "core/job/order.h"
#include "core/job/source_identity.h"

#include <cstdint>
#include <optional>
#include <span>
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
/// records), view and name if it has one, order (Order::identity(kNever)), skip (sorted, merged).
std::string job_json(const Order& order, std::span<const SourceIdentity> sources, const Ranges& skip);

/// Why a state saved with `saved` job at `position` cannot go on with job `current`, whose order is `order`: in words
/// that name what differs (dataset with fingerprints, shard and record counts; seed; order; window), or none if it can.
/// What lies at or after `position` (skips, and what the order says of stages and of sources that only those use) is no
/// difference. `saved` is untrusted: throws StateMismatch if it is not a job of a known format, InvalidArgument if it
/// is no JSON.
std::optional<std::string> job_difference(std::string_view saved, std::string_view current, const Order& order,
                                          std::uint64_t position);

}  // namespace penstock
