#include "core/job/job.h"

#include "core/base/error.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kMostSteeredBytes = std::size_t{60} << 20;  // what states may have, but for the rest of a job

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
      text_(std::make_shared<const JobText>(job_text(*order_, sources, cursor_.options().skip))) {
  order_->note_end(cursor_.run_end());
}

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
  std::shared_ptr<const Job> resumed;
  const std::optional<Difference> difference = difference_to(state, resumed);
  if (!difference) {
    check_position(state.position);
    const std::string place = (resumed ? *resumed : *this).describe(state.position);
    return {state.position, "resumes at " + place, std::move(resumed)};
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
    std::string of_weights;
    resumed = kept_weights(state, *difference, std::move(resumed), of_weights);
    return {*position,
            fmt::format("{}resumes at {}{}{}{}", another, (resumed ? *resumed : *this).describe(*position),
                        carried.empty() ? "" : ": ", carried, of_weights),
            std::move(resumed)};
  }
  raise(ErrorKind::StateMismatch,
        "this state is of another job: {}. Use on_mismatch=\"restart\", an argument of the loader, to begin at 0{}",
        difference->text,
        position ? fmt::format(" or \"keep_position\" to go on at {}{}", with_commas(*position),
                               carried.empty() ? "" : fmt::format(" ({})", carried))
                 : fmt::format(", or seek(): {}", carried));
}

// Weights that were set go on where positions are the same; `text`: what does not. Null: none of the state's do.
std::shared_ptr<const Job> Job::kept_weights(const State& state, const Difference& difference,
                                             std::shared_ptr<const Job> resumed, std::string& text) const {
  constexpr const char* kNone = "; the weights that were set in the state's job are left out";
  if (difference.carried.position != state.position) {
    if (resumed && resumed->order_->steering()->size() > order_->steering()->size()) text = kNone;
    return nullptr;
  }
  if (!difference.is_of_weights) return resumed;
  try {
    resumed = with_saved(state, true);
    if (resumed) text = "; the weights that were set go on without sources that this job lacks";
    return resumed;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::StateMismatch) throw;
    text = kNone;
    return nullptr;
  }
}

// `resumed`: the job with the weights that the state's had set, if it is steered and can have them.
std::optional<Job::Difference> Job::difference_to(const State& state, std::shared_ptr<const Job>& resumed) const {
  std::optional<std::string> refused;
  try {
    resumed = with_saved(state);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::StateMismatch) throw;
    refused = error.what();
  }
  try {
    const std::string now = text_->before + text_->after;
    std::optional<std::string> text =
        job_difference(state.job, now, resumed ? *resumed->order_ : *order_, state.position);
    const bool is_refused = refused.has_value();
    if (is_refused) text = std::move(refused);
    if (!text) return std::nullopt;
    return Difference{std::move(*text), carry_over(state.job, now, state.position), is_refused};
  } catch (const Error& error) {
    // A job of a format that this version does not know: what its position counts is unknown.
    if (error.kind() != ErrorKind::StateMismatch) throw;
    return Difference{error.what(), {std::nullopt, "observations of an unknown job", "those of this one"}};
  }
}

// What the state's job had set, and from its position on what this one had set besides. Null where nothing changes.
std::shared_ptr<const Job> Job::with_saved(const State& state, bool lacking_too) const {
  const std::shared_ptr<const Steering> own = order_->steering();
  if (!own) return nullptr;
  const std::optional<Steering> saved = saved_steering(state.job, *text_, own->names(), lacking_too);
  if (!saved) return nullptr;
  for (std::size_t i = saved->count_before(state.position); i < saved->size(); ++i) {
    const std::uint64_t begin = saved->begin(i);
    if (order_->change_begin(begin) == begin) continue;
    raise(ErrorKind::StateMismatch,
          "weights were set from position {} on, which is within a group of this job's stages: keep the group and the "
          "begins of stages before it",
          with_commas(begin));
  }
  try {
    return std::make_shared<const Job>(with_steering(saved->with_later(*own, own->count_before(state.position))));
  } catch (const Error& error) {
    raise(ErrorKind::StateMismatch, "the weights that were set in the state's job: {}", error.what());
  }
}

Job Job::with_steering(Steering steering) const {
  Job changed = *this;
  changed.order_ = order_->steered(std::make_shared<const Steering>(std::move(steering)));
  CursorOptions options = cursor_.options();
  // A steered job has no epochs: it is one, or never ends.
  options.epochs.reset();
  if (changed.order_->epoch_size() < kMostPosition) options.epochs = 1;
  changed.cursor_ = Cursor(complete(std::move(options), changed.order_));
  return changed;
}

Job Job::with_weights(std::uint64_t position, std::vector<std::uint64_t> weights) const {
  const std::shared_ptr<const Steering> steering = order_->steering();
  if (!steering) static_cast<void>(order_->steered(nullptr));  // says so
  check_position(position);
  const Steering::Entry entry{order_->change_begin(position), std::move(weights)};
  Steering changed = steering->with({&entry, 1});
  if (changed.text_bytes() > kMostSteeredBytes) {
    raise(
        ErrorKind::InvalidArgument,
        "{} weights were set, and their text is {} bytes: a state takes {}; set them less often, or with fewer digits",
        with_commas(changed.size()), with_commas(changed.text_bytes()), with_commas(kMostSteeredBytes));
  }
  return with_steering(std::move(changed));
}

std::string Job::json_before(std::uint64_t position) const {
  std::string text = text_->before;
  if (text_->after.empty()) return text;
  const Steering& steering = *order_->steering();
  steering.append_text(position == Order::kNever ? steering.size() : steering.count_before(position), text);
  return text += text_->after;
}

std::string Job::summary() const {
  if (text_->after.empty()) return text_->before;
  const Steering& steering = *order_->steering();
  std::string text = text_->before;
  if (steering.size() > 0) {
    text += fmt::format("{{\"count\":{},\"digest\":\"{}\",\"last\":{}}}", steering.size(), steering.digest(),
                        steering.last_text());
  }
  return text + text_->after;
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
