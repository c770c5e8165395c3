// State: what a checkpoint keeps of a job, and whether one that was saved is of the job that runs now.
//
// The state is {"version": 1, "position": P, "job": "<canonical JSON>"}: three keys for ever; growth happens inside
// job. Thread rule: values and pure functions, any thread.
//
// A job that is steered (core/job/steering.h) has a format of its own, 2: its order ends with the weights that were
// set.
#pragma once

#include "core/job/order.h"
#include "core/job/source_identity.h"
#include "core/job/steering.h"

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

/// What a job says beside the weights that were set, which stand between the two; `after` is empty where none can be.
struct JobText {
  std::string before;
  std::string after;
};

/// Canonical JSON (sorted keys, no spaces) of the job: format, for each source its dataset (fingerprint, shards,
/// records), view and name if it has one, order (Order::identity(kNever)), skip (sorted, merged).
std::string job_json(const Order& order, std::span<const SourceIdentity> sources, const Ranges& skip);
/// The same in parts, without the weights that the order has.
JobText job_text(const Order& order, std::span<const SourceIdentity> sources, const Ranges& skip);
/// Of a saved job, which is untrusted, the weights that were set, for the sources `names`; none where it is not steered
/// or no job. `now`: what the present job says, beside which little is to be read. Throws StateMismatch for weights
/// that are damaged, or of a source that `names` lacks, unless `lacking_too`: see parse_steering().
std::optional<Steering> saved_steering(std::string_view saved, const JobText& now,
                                       const std::vector<std::string>& names, bool lacking_too = false);

/// Why a state saved with `saved` job at `position` cannot go on with job `current`, whose order is `order`: in words
/// that name what differs (dataset with fingerprints, shard and record counts; seed; order; window), or none if it can.
/// What lies at or after `position` (skips, and what the order says of stages and of sources that only those use) is no
/// difference, and weights that were set are not compared: `order` has those of the state. `saved` is untrusted: throws
/// StateMismatch if it is not a job of a known format, InvalidArgument if it is no JSON.
std::optional<std::string> job_difference(std::string_view saved, std::string_view current, const Order& order,
                                          std::uint64_t position);

}  // namespace penstock
