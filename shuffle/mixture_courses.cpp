#include "shuffle/mixture_courses.h"

#include "core/base/error.h"
#include "core/job/position.h"
#include "shuffle/permutation.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock::shuffle {
namespace {

[[noreturn]] void refuse_course(const std::string& why) {
  raise(ErrorKind::InvalidArgument, "{}", why);
}

// The weights of the same sources at another length: that of those which `to` has.
std::vector<std::uint64_t> at_length_of(const std::vector<std::uint64_t>& to, const std::vector<std::uint64_t>& weights,
                                        std::size_t count) {
  const auto first = std::find_if(to.begin(), to.end(), [](std::uint64_t weight) { return weight > 0; });
  const auto begin = static_cast<std::size_t>(first - to.begin()) / count * count;
  std::vector<std::uint64_t> moved(weights.size());
  for (std::size_t s = 0; s < weights.size(); ++s) moved[begin + s % count] += weights[s];
  return moved;
}

const char* unit_word(const MixturePlace& place) {
  return place.in_tokens ? "tokens" : "observations";
}

}  // namespace

MixtureCourses::MixtureCourses(std::shared_ptr<const MixtureSpec> spec)
    : spec_(std::move(spec)), windows_{spec_->window} {
  if (spec_->names.empty()) refuse_course("a mixture of no sources");
  if (spec_->stages.empty()) refuse_course("a mixture without stages: give at least one");
  if (spec_->group == 0) refuse_course("group=0: wanted at least 1");
  std::vector<MixtureCourse> list;
  std::vector<RampBegin> ramps;
  for (std::size_t i = 0; i < spec_->stages.size(); ++i) {
    add(spec_->stages[i], i, list);
    note_ramp(list, ramps);
  }
  list_ = std::make_shared<const std::vector<MixtureCourse>>(std::move(list));
  ramps_ = std::make_shared<const std::vector<RampBegin>>(std::move(ramps));
}

MixtureCourses MixtureCourses::with(std::shared_ptr<const Steering> steering, std::size_t same) const {
  for (std::size_t i = same; spec_->of_each_length > 0 && steering && i < steering->size(); ++i) {
    check_length(*steering, i);
  }
  MixtureCourses changed = *this;
  changed.steering_ = steering && steering->size() > 0 ? std::move(steering) : nullptr;
  return changed;
}

// ---- how the list is made

void MixtureCourses::add(const MixtureStageSpec& stage, std::size_t number, std::vector<MixtureCourse>& list) {
  MixtureStages::check_weights(stage.weights, number);
  MixtureCourse course;
  course.number = number;
  course.window = stage.window == 0 ? spec_->window : stage.window;
  if (course.window != spec_->window && !spec_->are_packed) {
    if (spec_->window == 0) {
      refuse_course(fmt::format("stage {}: window={}: documents have no window", number, stage.window));
    }
    if (spec_->window % course.window != 0) {
      refuse_course(fmt::format("stage {}: window={}: it must divide the view's window, {}", number, course.window,
                                spec_->window));
    }
    course.parts = spec_->window / course.window;
  }
  if (course.parts > UINT32_MAX || Wide{spec_->group} * course.parts > kMaxSize) {
    refuse_course(fmt::format("stage {}: groups of {} units in {} parts: more than 2^52; use a smaller group", number,
                              with_commas(spec_->group), with_commas(course.parts)));
  }
  if (number == 0) {
    if (stage.at.value != 0) {
      refuse_course(fmt::format("stage 0: it begins at {} {}: the first stage begins at 0", with_commas(stage.at.value),
                                unit_word(stage.at)));
    }
  } else {
    const MixtureCourse& before = list.back();
    course.begin = rounded(before, stage.at);
    if (course.begin <= before.begin) {
      refuse_course(
          fmt::format("stage {}: it begins at {} {}, stage {} at position {}: each stage begins after the one before",
                      number, with_commas(stage.at.value), unit_word(stage.at), number - 1, with_commas(before.begin)));
    }
    course.begin_tokens = before.begin_tokens + Wide{course.begin - before.begin} * before.window;
    course.unit = before.unit + (course.begin - before.begin) / before.parts;
  }
  const auto known = spec_->are_packed ? windows_.begin() : std::find(windows_.begin(), windows_.end(), course.window);
  course.window_number = static_cast<std::uint32_t>(known - windows_.begin());
  if (known == windows_.end()) windows_.push_back(course.window);
  if (stage.ramp) set_ramp(stage, course);
  list.push_back(course);
}

void MixtureCourses::set_ramp(const MixtureStageSpec& stage, MixtureCourse& course) const {
  if (course.number == 0) refuse_course("stage 0: a ramp leads from the stage before, and there is none");
  if (stage.ramp->value == 0) {
    refuse_course(fmt::format("stage {}: a ramp of 0 {}: leave it out", course.number, unit_word(*stage.ramp)));
  }
  MixturePlace end = *stage.ramp;
  const Wide begin = end.in_tokens ? course.begin_tokens : course.begin;
  // One that ends beyond all positions or tokens ends with them.
  end.value = static_cast<std::uint64_t>(std::min<Wide>(begin + end.value, UINT64_MAX));
  if (end.in_tokens && course.window > 0 && (end.value - begin) / course.window >= kMostPosition - course.begin) {
    refuse_course(fmt::format("stage {}: a ramp of {} tokens: positions end at 2^63", course.number,
                              with_commas(stage.ramp->value)));
  }
  course.ramp = rounded(course, end) - course.begin;
}

// A stage without a ramp ends what those before it have to say.
void MixtureCourses::note_ramp(const std::vector<MixtureCourse>& list, std::vector<RampBegin>& ramps) const {
  RampBegin& added = ramps.emplace_back();
  const MixtureCourse& course = list.back();
  added.since = course.begin;
  if (course.ramp == 0) return;
  const MixtureCourse& before = list[course.number - 1];
  const bool is_cut = before.ramp >= course.begin - before.begin;  // its last step is not yet the stage's own
  added.since = is_cut ? ramps[before.number].since : before.begin;
  added.from = is_cut ? ramp_of(before, ramps[before.number].from).weights_at(course.unit - 1) : weights(before);
}

// Which of the lengths the sources are of that have these weights.
std::size_t MixtureCourses::length_of(const std::vector<std::uint64_t>& weights) const {
  const auto first = std::find_if(weights.begin(), weights.end(), [](std::uint64_t weight) { return weight > 0; });
  return static_cast<std::size_t>(first - weights.begin()) / spec_->of_each_length;
}

void MixtureCourses::check_length(const Steering& steering, std::size_t entry) const {
  const std::uint64_t begin = steering.begin(entry);
  const MixtureCourse& there = listed_at(begin);
  const std::size_t wanted = length_of(spec_->stages[there.number].weights);
  const std::vector<std::uint64_t> weights = steering.weights(entry);
  for (std::size_t s = 0; s < weights.size(); ++s) {
    const std::size_t length = s / spec_->of_each_length;
    if (weights[s] == 0 || length == wanted) continue;
    std::string stages;
    for (const MixtureCourse& course : *list_) {
      if (length_of(spec_->stages[course.number].weights) != length) continue;
      fmt::format_to(std::back_inserter(stages), "{}{}", stages.empty() ? "" : ", ", course.number);
    }
    refuse_course(fmt::format(
        "the weights set at position {}: they are of {}, rows of {}, but there stage {} has {}: let the stages of each "
        "length begin where they did",
        with_commas(begin), spec_->names[s], stages.empty() ? "no stage's length" : "the length of stage " + stages,
        there.number, spec_->names[wanted * spec_->of_each_length + s % spec_->of_each_length]));
  }
}

// The first position at or after `place` where a stage that follows `course` may begin: that of a whole group.
std::uint64_t MixtureCourses::rounded(const MixtureCourse& course, const MixturePlace& place) const {
  const Wide begin = place.in_tokens ? course.begin_tokens : course.begin;
  std::uint64_t past = place.value > begin ? static_cast<std::uint64_t>(place.value - begin) : 0;
  if (place.in_tokens) {
    if (course.window == 0) {
      refuse_course("Tokens: documents have no window, so tokens are no positions: give a position");
    }
    past = past / course.window + (past % course.window != 0 ? 1 : 0);
  }
  if (course.parts > 1) {
    const std::uint64_t group = spec_->group * course.parts;
    past = (past / group + (past % group != 0 ? 1 : 0)) * group;
  }
  if (past > kMostPosition - course.begin) {
    refuse_course(fmt::format("{} {}: positions end at 2^63", with_commas(place.value), unit_word(place)));
  }
  return course.begin + past;
}

// The last unit whose group begins at a position.
std::uint64_t MixtureCourses::most_unit(const MixtureCourse& course) const {
  const std::uint64_t past = kMostPosition - course.begin;
  if (course.parts == 1) return course.unit + past;
  const Wide units = Wide{past / (spec_->group * course.parts) + 1} * spec_->group - 1;
  return static_cast<std::uint64_t>(std::min<Wide>(course.unit + units, Order::kNever));
}

// ---- what it answers

const MixtureCourse& MixtureCourses::listed_at(std::uint64_t position) const {
  const auto after = std::upper_bound(list_->begin(), list_->end(), position,
                                      [](std::uint64_t p, const MixtureCourse& course) { return p < course.begin; });
  return *std::prev(after);
}

MixtureCourse MixtureCourses::change(std::size_t entry) const {
  const std::uint64_t begin = steering_->begin(entry);
  MixtureCourse course = listed_at(begin);
  course.begin_tokens += Wide{begin - course.begin} * course.window;
  course.unit += (begin - course.begin) / course.parts;
  course.begin = begin;
  course.entry = entry;
  course.ramp = 0;
  return course;
}

MixtureCourse MixtureCourses::at(std::uint64_t position) const {
  const MixtureCourse& listed = listed_at(position);
  const std::size_t set = steering_ ? steering_->count_before(position + 1) : 0;
  return set > 0 && steering_->begin(set - 1) >= listed.begin ? change(set - 1) : listed;
}

MixtureCourse MixtureCourses::of_unit(std::uint64_t unit) const {
  const auto after = std::upper_bound(list_->begin(), list_->end(), unit,
                                      [](std::uint64_t u, const MixtureCourse& course) { return u < course.unit; });
  const MixtureCourse& listed = *std::prev(after);
  if (!steering_) return listed;
  return at(static_cast<std::uint64_t>(std::min<Wide>(listed.group_begin(unit, spec_->group), kMostPosition)));
}

std::optional<MixtureCourse> MixtureCourses::next(const MixtureCourse& course) const {
  const bool is_listed = course.number + 1 < list_->size();
  const std::size_t set = steering_ ? steering_->count_before(course.begin + 1) : 0;
  if (steering_ && set < steering_->size()) {
    if (!is_listed || steering_->begin(set) <= (*list_)[course.number + 1].begin) return change(set);
  }
  return is_listed ? std::optional((*list_)[course.number + 1]) : std::nullopt;
}

std::vector<std::uint64_t> MixtureCourses::weights(const MixtureCourse& course) const {
  return course.entry ? steering_->weights(*course.entry) : spec_->stages[course.number].weights;
}

UnitStretch MixtureCourses::stretch(const MixtureCourse& course) const {
  UnitStretch stretch{.number = course.number,
                      .set_at = course.entry ? course.begin : Order::kNever,
                      .begin = course.unit,
                      .most = most_unit(course),
                      .weights = weights(course),
                      .group = course.parts > 1 ? spec_->group : 1};
  if (const std::optional<MixtureCourse> after = next(course)) stretch.end = after->unit;
  if (course.ramp > 0) {
    const UnitStretch ramp = ramp_of(course, weights_before(course));
    stretch.ramp_groups = ramp.ramp_groups;
    stretch.from = ramp.from;
  }
  return stretch;
}

// Of its units, without an end, as its ramp leads on from these weights.
UnitStretch MixtureCourses::ramp_of(const MixtureCourse& course, std::vector<std::uint64_t> from) const {
  UnitStretch ramp{.begin = course.unit, .weights = weights(course), .group = course.parts > 1 ? spec_->group : 1};
  ramp.ramp_groups = course.ramp / (course.parts > 1 ? spec_->group * course.parts : 1);
  ramp.from = spec_->of_each_length > 0 ? at_length_of(ramp.weights, from, spec_->of_each_length) : std::move(from);
  return ramp;
}

// Those in force where a stage of the list begins. Ramps that each cut the one before are gone through from the first
// one on, or from the last weights that were set.
std::vector<std::uint64_t> MixtureCourses::weights_before(const MixtureCourse& course) const {
  const RampBegin& listed = (*ramps_)[course.number];
  const std::size_t set = steering_ ? steering_->count_before(course.begin) : 0;
  if (set == 0 || steering_->begin(set - 1) < listed.since) return listed.from;
  const MixtureCourse last = change(set - 1);
  std::vector<std::uint64_t> found = weights(last);
  for (std::size_t i = last.number + 1; i < course.number; ++i) {
    const MixtureCourse& cut = (*list_)[i];
    found = cut.ramp == 0 ? weights(cut) : ramp_of(cut, std::move(found)).weights_at((*list_)[i + 1].unit - 1);
  }
  return found;
}

std::uint64_t MixtureCourses::begin_of_change(std::uint64_t position) const {
  return rounded(listed_at(position), {position, false});
}

std::uint64_t MixtureCourses::window_end(std::uint64_t position) const {
  const MixtureCourse& listed = listed_at(position);
  for (std::size_t i = listed.number + 1; i < list_->size(); ++i) {
    if ((*list_)[i].window != listed.window) return (*list_)[i].begin;
  }
  return Order::kNever;
}

std::uint64_t MixtureCourses::position_of(const MixturePlace& place) const {
  if (!place.in_tokens) {
    if (place.value > kMostPosition) refuse_course(fmt::format("position {}: at most 2^63", with_commas(place.value)));
    return place.value;
  }
  const auto after =
      std::upper_bound(list_->begin(), list_->end(), place.value,
                       [](std::uint64_t t, const MixtureCourse& course) { return t < course.begin_tokens; });
  MixtureCourse course = *std::prev(after);
  course.parts = 1;  // any position may be meant
  return rounded(course, place);
}

Wide MixtureCourses::tokens_before(std::uint64_t position) const {
  const MixtureCourse& course = listed_at(position);
  return course.begin_tokens + Wide{position - course.begin} * course.window;
}

}  // namespace penstock::shuffle
