#include "core/job/job.h"

#include "core/base/error.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

CursorOptions complete(CursorOptions options, const std::shared_ptr<const Order>& order) {
  EpochSizes sizes = order->epoch_sizes();
  options.epoch_size = sizes.front().second;
  options.grown.assign(sizes.begin() + 1, sizes.end());
  options.stage_end = [order](std::uint64_t position) { return order->end(position); };
  return options;
}

}  // namespace

Job::Job(std::shared_ptr<const Order> order, std::span<const SourceIdentity> sources, CursorOptions options)
    : order_(std::move(order)),
      cursor_(complete(std::move(options), order_)),
      json_(job_json(*order_, sources, cursor_.options().skip)) {}

void Job::pick(const BatchPlan& plan, std::span<Pick> out) const {
  std::uint64_t filled = 0;
  for (const PositionRun& run : plan.runs) {
    order_->pick(run.first, run.stride, out.subspan(filled, run.count));
    filled += run.count;
  }
}

Resume Job::load(const State& state, OnMismatch on_mismatch) const {
  if (state.version == 0) {
    raise(
        ErrorKind::StateMismatch,
        "the state has version 0, which is none: versions begin at 1, so no loader of penstock has saved it as it is");
  }
  if (state.version > kStateVersion) {
    raise(ErrorKind::StateMismatch, "the state has version {}, this penstock reads versions up to {}: use a later one",
          state.version, kStateVersion);
  }
  const std::optional<Difference> difference = difference_to(state);
  if (!difference) {
    check_position(state.position);
    return {state.position, "resumes at " + describe(state.position)};
  }
  const std::string another = fmt::format("another job ({}): ", difference->text);
  if (on_mismatch == OnMismatch::Restart) return {0, another + "resumes at " + describe(0)};
  const auto& [position, saved_unit, unit] = difference->carried;
  const std::string carried = saved_unit == unit && position == state.position ? ""
                              : position ? fmt::format("as many records as {} {}, rounded down to {}",
                                                       with_commas(state.position), saved_unit, unit)
                                         : fmt::format("a position in {} is none in {}", saved_unit, unit);
  if (on_mismatch == OnMismatch::KeepPosition && position) {
    check_position(*position);
    return {*position,
            fmt::format("{}resumes at {}{}{}", another, describe(*position), carried.empty() ? "" : ": ", carried)};
  }
  raise(ErrorKind::StateMismatch,
        "this state is of another job: {}. Use on_mismatch=\"restart\", an argument of the loader, to begin at 0{}",
        difference->text,
        position ? fmt::format(" or \"keep_position\" to go on at {}{}", with_commas(*position),
                               carried.empty() ? "" : fmt::format(" ({})", carried))
                 : fmt::format(", or seek(): {}", carried));
}

std::optional<Job::Difference> Job::difference_to(const State& state) const {
  try {
    std::optional<std::string> text = job_difference(state.job, json_, *order_, state.position);
    if (!text) return std::nullopt;
    return Difference{std::move(*text), carry_over(state.job, json_, state.position)};
  } catch (const Error& error) {
    // A job of a format that this version does not know: what its position counts is unknown.
    if (error.kind() != ErrorKind::StateMismatch) throw;
    return Difference{error.what(), {std::nullopt, "observations of an unknown job", "those of this one"}};
  }
}

void Job::check_position(std::uint64_t position) {
  if (position > kMostPosition) raise(ErrorKind::InvalidArgument, "position {}: at most 2^63", position);
}

Job Job::with_batch_size(std::uint64_t position, std::uint64_t size) const {
  Job changed = *this;
  changed.cursor_.set_batch_size(position, size);
  return changed;
}

std::string Job::describe(std::uint64_t position) const {
  const std::uint64_t end = cursor_.run_end();
  return fmt::format(
      "{}, position {}, step {}{}{}", order_->place(std::min(position, end)), with_commas(position),
      with_commas(cursor_.steps_before(position)),
      position > end ? fmt::format(", beyond the last epoch, which ends at position {}", with_commas(end)) : "",
      position >= end ? ": the run is over" : "");
}

}  // namespace penstock
