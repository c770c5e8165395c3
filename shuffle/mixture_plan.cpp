#include "shuffle/mixture_plan.h"

#include "core/base/error.h"
#include "core/job/position.h"
#include "shuffle/permutation.h"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::shuffle {
namespace {

constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 26;  // of a group that is mixed, in seconds

[[noreturn]] void refuse(const std::string& why) {
  raise(ErrorKind::InvalidArgument, "{}", why);
}

}  // namespace

MixturePlan::MixturePlan(MixtureSpec spec)
    : spec_(std::move(spec)), windows_{spec_.window}, stages_(spec_.names, spec_.caps) {
  if (spec_.names.empty()) refuse("a mixture of no sources");
  if (spec_.stages.empty()) refuse("a mixture without stages: give at least one");
  if (spec_.group == 0) refuse("group=0: wanted at least 1");
  for (std::size_t i = 0; i < spec_.stages.size(); ++i) add_course(spec_.stages[i], i);
  for (std::size_t i = 0; i < courses_.size(); ++i) add_stages(i);
  if (stages_.end() != Order::kNever) {
    const Course& last = courses_.back();
    const Wide position = last.begin + Wide{stages_.end() - last.unit} * last.parts;
    if (position <= kMostPosition) last_position_ = static_cast<std::uint64_t>(position);
  }
  end_ = last_position_;
  if (!spec_.end) return;
  const std::uint64_t end = position_of(*spec_.end);
  if (end <= courses_.back().begin) {
    refuse(fmt::format("end: the run ends at position {}, but stage {} begins at {}: raise the end or leave it out",
                       with_commas(end), courses_.size() - 1, with_commas(courses_.back().begin)));
  }
  end_ = std::min(end_, end);
}

// ---- how it is made

void MixturePlan::add_course(const MixtureStageSpec& stage, std::size_t number) {
  MixtureStages::check_weights(stage.weights, number);
  Course course;
  course.window = stage.window == 0 ? spec_.window : stage.window;
  if (course.window != spec_.window && !spec_.are_packed) {
    if (spec_.window == 0) refuse(fmt::format("stage {}: window={}: documents have no window", number, stage.window));
    if (spec_.window % course.window != 0) {
      refuse(fmt::format("stage {}: window={}: it must divide the view's window, {}", number, course.window,
                         spec_.window));
    }
    course.parts = spec_.window / course.window;
  }
  if (course.parts > UINT32_MAX || Wide{spec_.group} * course.parts > kMaxSize) {
    refuse(fmt::format("stage {}: groups of {} units in {} parts: more than 2^52; use a smaller group", number,
                       with_commas(spec_.group), with_commas(course.parts)));
  }
  if (number == 0) {
    if (stage.at.value != 0) {
      refuse(fmt::format("stage 0: it begins at {} {}: the first stage begins at 0", with_commas(stage.at.value),
                         stage.at.in_tokens ? "tokens" : "observations"));
    }
  } else {
    const Course& before = courses_.back();
    course.begin = rounded(before, stage.at);
    if (course.begin <= before.begin) {
      refuse(
          fmt::format("stage {}: it begins at {} {}, stage {} at position {}: each stage begins after the one before",
                      number, with_commas(stage.at.value), stage.at.in_tokens ? "tokens" : "observations", number - 1,
                      with_commas(before.begin)));
    }
    course.begin_tokens = before.begin_tokens + Wide{course.begin - before.begin} * before.window;
    course.unit = before.unit + (course.begin - before.begin) / before.parts;
  }
  const auto known = spec_.are_packed ? windows_.begin() : std::find(windows_.begin(), windows_.end(), course.window);
  course.window_number = static_cast<std::uint32_t>(known - windows_.begin());
  if (known == windows_.end()) windows_.push_back(course.window);
  courses_.push_back(course);
}

// The first position at or after `place` where a stage that follows `course` may begin: that of a whole group.
std::uint64_t MixturePlan::rounded(const Course& course, const MixturePlace& place) const {
  const Wide begin = place.in_tokens ? course.begin_tokens : course.begin;
  std::uint64_t past = place.value > begin ? static_cast<std::uint64_t>(place.value - begin) : 0;
  if (place.in_tokens) {
    if (course.window == 0) refuse("Tokens: documents have no window, so tokens are no positions: give a position");
    past = past / course.window + (past % course.window != 0 ? 1 : 0);
  }
  if (course.parts > 1) {
    const std::uint64_t group = spec_.group * course.parts;
    past = (past / group + (past % group != 0 ? 1 : 0)) * group;
  }
  if (past > kMostPosition - course.begin) {
    refuse(fmt::format("{} {}: positions end at 2^63", with_commas(place.value),
                       place.in_tokens ? "tokens" : "observations"));
  }
  return course.begin + past;
}

// The last unit whose group begins at a position.
std::uint64_t MixturePlan::most_unit(const Course& course) const {
  const std::uint64_t past = kMostPosition - course.begin;
  if (course.parts == 1) return course.unit + past;
  const Wide units = Wide{past / (spec_.group * course.parts) + 1} * spec_.group - 1;
  return static_cast<std::uint64_t>(std::min<Wide>(course.unit + units, Order::kNever));
}

// The stages that come out of course `number`.
void MixturePlan::add_stages(std::size_t number) {
  const Course& course = courses_[number];
  const bool is_last = number + 1 == courses_.size();
  UnitStretch stretch{.number = number,
                      .begin = course.unit,
                      .end = is_last ? Order::kNever : courses_[number + 1].unit,
                      .most = most_unit(course),
                      .weights = spec_.stages[number].weights};
  for (MixtureStage& stage : stages_.add(std::move(stretch))) {
    stage.begin = static_cast<std::uint64_t>(course.group_begin(stage.unit, spec_.group));
    stage.begin_tokens = course.begin_tokens + Wide{stage.begin - course.begin} * course.window;
    stage.window = course.window;
  }
  if (is_last || stages_.end() == Order::kNever) return;
  refuse(
      fmt::format("stage {}: its sources have given their caps by position {}, and stage {} begins at {}: raise the "
                  "caps, add a source, or begin stage {} earlier",
                  number, with_commas(course.begin + (stages_.end() - course.unit) * course.parts), number + 1,
                  with_commas(courses_[number + 1].begin), number + 1));
}

// ---- what it answers

const MixturePlan::Course& MixturePlan::course_at(std::uint64_t position) const {
  const auto after = std::upper_bound(courses_.begin(), courses_.end(), position,
                                      [](std::uint64_t p, const Course& course) { return p < course.begin; });
  return *std::prev(after);
}

std::size_t MixturePlan::stage_at(std::uint64_t position) const {
  const std::vector<MixtureStage>& stages = stages_.all();
  const auto after = std::upper_bound(stages.begin(), stages.end(), position,
                                      [](std::uint64_t p, const MixtureStage& stage) { return p < stage.begin; });
  return static_cast<std::size_t>(after - stages.begin()) - 1;
}

std::uint64_t MixturePlan::window_end(std::uint64_t position) const {
  const Course* course = &course_at(position);
  const std::uint64_t window = course->window;
  for (; course != courses_.data() + courses_.size(); ++course) {
    if (course->window != window) return course->begin;
  }
  return Order::kNever;
}

std::uint64_t MixturePlan::position_of(const MixturePlace& place) const {
  if (!place.in_tokens) {
    if (place.value > kMostPosition) refuse(fmt::format("position {}: at most 2^63", with_commas(place.value)));
    return place.value;
  }
  const auto after = std::upper_bound(courses_.begin(), courses_.end(), place.value,
                                      [](std::uint64_t t, const Course& c) { return t < c.begin_tokens; });
  Course course = *std::prev(after);
  course.parts = 1;  // any position may be meant
  return rounded(course, place);
}

Wide MixturePlan::tokens_before(std::uint64_t position) const {
  const Course& course = course_at(position);
  return course.begin_tokens + Wide{position - course.begin} * course.window;
}

std::uint64_t MixturePlan::short_group() const {
  if (last_position_ == Order::kNever || (stages_.end() - courses_.back().unit) % spec_.group == 0)
    return Order::kNever;
  const Course& last = courses_.back();
  return last.parts == 1 ? Order::kNever : static_cast<std::uint64_t>(last.group_begin(stages_.end(), spec_.group));
}

// Units of a group: fewer in the run's last one, where no source is left.
std::uint64_t MixturePlan::group_units(const Course& course, std::uint64_t group) const {
  const std::uint64_t begin = course.unit + group * spec_.group;
  return begin >= stages_.end() ? 0 : std::min(spec_.group, stages_.end() - begin);
}

void MixturePlan::raise_over(std::uint64_t position) const {
  raise(ErrorKind::InvalidArgument, "position {}: the mixture's sources have given their caps by position {}",
        with_commas(position), with_commas(last_position_));
}

void MixturePlan::find(std::uint64_t first, std::uint64_t stride, std::span<MixtureSlot> out) const {
  if (out.empty()) return;
  if (stride == 0) refuse("positions with stride 0: wanted at least 1");
  for (std::size_t done = 0; done < out.size();) {
    const std::uint64_t position = first + done * stride;
    const Course& course = course_at(position);
    const Course* const next = &course + 1;
    const std::uint64_t end = next == courses_.data() + courses_.size() ? Order::kNever : next->begin;
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size() - done, (end - 1 - position) / stride + 1));
    const std::span<MixtureSlot> slots = out.subspan(done, count);
    if (course.parts == 1) {
      if (last_position_ - position <= (count - 1) * stride || position >= last_position_) {
        raise_over(position + (count - 1) * stride);
      }
      stages_.find(course.unit + (position - course.begin), stride, slots);
    } else {
      find_parts(course, position, stride, slots);
    }
    done += count;
  }
}

// Units of a course that gives them in parts: each group has a permutation.
void MixturePlan::find_parts(const Course& course, std::uint64_t first, std::uint64_t stride,
                             std::span<MixtureSlot> out) const {
  std::array<std::uint64_t, kKernelBlock> places;
  const std::uint64_t whole = spec_.group * course.parts;
  for (std::size_t done = 0; done < out.size();) {
    const std::uint64_t past = first + done * stride - course.begin;
    const std::uint64_t group = past / whole;
    const std::uint64_t size = group_units(course, group) * course.parts;
    const std::uint64_t begin = past % whole;
    if (begin >= size) raise_over(course.begin + past);
    const std::uint64_t left = std::min<std::uint64_t>((size - 1 - begin) / stride + 1, places.size());
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size() - done, left));
    for (std::size_t i = 0; i < count; ++i) places[i] = begin + i * stride;
    const Permutation order(size, Key().absorb(kMixture).absorb(kParts).absorb(course.unit).state(), group);
    order(std::span(places).first(count), std::span(places).first(count));
    for (std::size_t i = 0; i < count; ++i, ++done) {
      MixtureSlot& slot = out[done];
      stages_.find(course.unit + group * spec_.group + places[i] / course.parts, 1, {&slot, 1});
      slot.part = static_cast<std::uint32_t>(places[i] % course.parts);
      slot.parts = static_cast<std::uint32_t>(course.parts);
      slot.window_number = course.window_number;
    }
  }
}

void MixturePlan::count(std::uint64_t position, std::span<std::uint64_t> out) const {
  if (position > last_position_) raise_over(position);
  std::fill(out.begin(), out.end(), 0);
  std::vector<std::uint64_t> before(out.size());
  std::vector<std::uint64_t> after(out.size());
  for (std::size_t i = 0; i < courses_.size() && courses_[i].begin < position; ++i) {
    const Course& course = courses_[i];
    const std::uint64_t end = i + 1 < courses_.size() ? std::min(position, courses_[i + 1].begin) : position;
    const std::uint64_t past = end - course.begin;
    const std::uint64_t group = spec_.group * course.parts;
    const std::uint64_t begun = course.parts == 1 || end == last_position_ ? 0 : past % group;  // of a group
    stages_.count(course.unit, before);
    stages_.count(course.unit + (past - begun) / course.parts, after);
    for (std::size_t s = 0; s < out.size(); ++s) out[s] += (after[s] - before[s]) * course.parts;
    if (begun > kMostCounted) {
      refuse(
          fmt::format("position {}: {} observations of its group come before it, and are counted one by one: use a "
                      "smaller group= than {}, or count where a group begins, at {}",
                      with_commas(position), with_commas(begun), with_commas(spec_.group), with_commas(end - begun)));
    }
    std::array<MixtureSlot, kKernelBlock> slots;
    for (std::uint64_t done = 0; done < begun; done += slots.size()) {
      const auto some = std::span(slots).first(std::min<std::uint64_t>(begun - done, slots.size()));
      find(end - begun + done, 1, some);
      for (const MixtureSlot& slot : some) ++out[slot.source];
    }
  }
}

void MixturePlan::count_begun(std::uint64_t position, std::span<std::uint64_t> out) const {
  if (position >= last_position_) raise_over(position);
  const Course& course = course_at(position);
  const std::uint64_t past = position - course.begin;
  const std::uint64_t unit =
      course.unit + (course.parts == 1 ? past + 1 : (past / (spec_.group * course.parts) + 1) * spec_.group);
  stages_.count(std::min(unit, stages_.end()), out);
}

std::uint64_t MixturePlan::group_end(std::uint64_t position) const {
  const Course& course = course_at(position);
  if (course.parts == 1) return position + 1;
  const std::uint64_t group = spec_.group * course.parts;
  return std::min(course.begin + ((position - course.begin) / group + 1) * group, last_position_);
}

std::uint64_t MixturePlan::unit_end(std::uint64_t position, std::uint32_t source, std::uint64_t ordinal) const {
  const Course& course = course_at(position);
  const std::uint64_t unit = stages_.unit_of(stage_at(position), source, ordinal);
  const Wide size = course.parts == 1 ? 1 : Wide{spec_.group} * course.parts;
  return static_cast<std::uint64_t>(std::min<Wide>(course.group_begin(unit, spec_.group) + size, last_position_));
}

}  // namespace penstock::shuffle
