#include "shuffle/mixture_tables.h"

#include "core/base/error.h"
#include "core/job/position.h"
#include "shuffle/permutation.h"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <utility>

namespace penstock::shuffle {
namespace {

constexpr std::size_t kNotedEvery = 128;

}  // namespace

// ---- a stage's

void StageTable::find(std::uint64_t first, std::uint64_t stride, std::span<MixtureSlot> out) const {
  boost::container::small_vector<Slot, kKernelBlock> slots(out.size());
  strata.find(first - stage.unit, stride, {slots.data(), slots.size()});
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint32_t source = stage.sources[slots[i].member];
    out[i] = {stage.given[source] + slots[i].number, source};
  }
}

void StageTable::count(std::uint64_t unit, std::span<std::uint64_t> out) const {
  std::vector<std::uint64_t> more(stage.sources.size());
  strata.count(unit - stage.unit, more);
  std::copy(stage.given.begin(), stage.given.end(), out.begin());
  for (std::size_t i = 0; i < more.size(); ++i) out[stage.sources[i]] += more[i];
}

// ---- how they are made

MixtureTables::MixtureTables(std::shared_ptr<const MixtureStages> stages, MixtureCourses courses)
    : stages_(std::move(stages)), courses_(std::move(courses)) {
  note(courses_.at(0), std::vector<std::uint64_t>(courses_.spec().names.size()));
  settle();
}

MixtureTables::MixtureTables(const MixtureTables& before, MixtureCourses courses, std::uint64_t unit)
    : stages_(before.stages_), courses_(std::move(courses)) {
  const std::vector<std::uint64_t>& units = before.notes_.units;
  const std::size_t sources = courses_.spec().names.size();
  // At `unit` itself, no course of these may begin.
  const auto same = std::lower_bound(units.begin(), units.end(), unit) - units.begin();
  const auto kept = std::max<std::size_t>(static_cast<std::size_t>(same), 1);  // the run's begin
  for (std::size_t i = 0; i < kept; ++i) {
    // What was noted since it was the last one, and is not any more, goes.
    if (i > 0 && i + 1 < kept && !is_noted(courses_.of_unit(units[i]))) continue;
    notes_.units.push_back(units[i]);
    const auto given = before.notes_.given.begin() + static_cast<std::ptrdiff_t>(i * sources);
    notes_.given.insert(notes_.given.end(), given, given + static_cast<std::ptrdiff_t>(sources));
  }
  settle();
}

void MixtureTables::note(const MixtureCourse& course, const std::vector<std::uint64_t>& given) {
  notes_.units.push_back(course.unit);
  notes_.given.insert(notes_.given.end(), given.begin(), given.end());
}

bool MixtureTables::is_noted(const MixtureCourse& course) const {
  return !course.entry || *course.entry % kNotedEvery == 0 || *course.entry + 1 == courses_.steering()->size();
}

// Notes what comes after the last note; without caps nothing can end, so what follows the last weights that were set is
// counted when it is asked for.
void MixtureTables::settle() {
  const Steering* const steering = courses_.steering();
  const std::size_t sources = courses_.spec().names.size();
  MixtureCourse course = courses_.of_unit(notes_.units.back());
  std::vector<std::uint64_t> given(notes_.given.end() - static_cast<std::ptrdiff_t>(sources), notes_.given.end());
  while (true) {
    const std::optional<MixtureCourse> next = courses_.next(course);
    const bool is_past = steering != nullptr && course.begin >= steering->begin(steering->size() - 1);
    if (!stages_->has_caps() && (!next || is_past)) return;
    StretchStages out = stages_->stages(courses_.stretch(course), std::move(given));
    if (out.end != Order::kNever && next) refuse_end(course, out.end, *next);
    end_ = out.end;
    if (!next) return;
    given = std::move(out.given);
    course = *next;
    if (is_noted(course)) note(course, given);
  }
}

void MixtureTables::refuse_end(const MixtureCourse& course, std::uint64_t end, const MixtureCourse& next) const {
  const std::string begin = with_commas(next.begin);
  raise(ErrorKind::InvalidArgument,
        "{} sources have given their caps by position {}, and {} begins at {}: raise the caps, add a source, or "
        "begin {} earlier",
        course.entry ? fmt::format("the weights set at position {}: their", with_commas(course.begin))
                     : fmt::format("stage {}: its", course.number),
        with_commas(course.begin + (end - course.unit) * course.parts),
        next.entry ? "what was set later" : fmt::format("stage {}", next.number), begin,
        next.entry ? "that" : fmt::format("stage {}", next.number));
}

std::vector<std::uint64_t> MixtureTables::given_at(const MixtureCourse& course) const {
  const std::vector<std::uint64_t>& units = notes_.units;
  const auto noted = std::prev(std::upper_bound(units.begin(), units.end(), course.unit)) - units.begin();
  const auto sources = static_cast<std::ptrdiff_t>(courses_.spec().names.size());
  const auto first = notes_.given.begin() + noted * sources;
  std::vector<std::uint64_t> given(first, first + sources);
  MixtureCourse at = courses_.of_unit(units[static_cast<std::size_t>(noted)]);
  while (at.unit < course.unit) {
    given = stages_->stages(courses_.stretch(at), std::move(given)).given;
    at = *courses_.next(at);
  }
  return given;
}

// What comes out of the course that has a unit.
std::shared_ptr<const MixtureTables::CourseStages> MixtureTables::course_stages(std::uint64_t unit) const {
  const MixtureCourse course = courses_.of_unit(unit);
  const auto is_it = [&](const CourseStages& each) { return each.unit == course.unit; };
  if (auto found = made_courses_.find(is_it)) return found;
  auto made = std::make_shared<const CourseStages>(
      CourseStages{course.unit, stages_->stages(courses_.stretch(course), given_at(course))});
  made_courses_.keep(made);
  return made;
}

std::shared_ptr<const StageTable> MixtureTables::make_table(std::uint64_t unit) const {
  const std::shared_ptr<const CourseStages> course = course_stages(unit);
  const std::vector<MixtureStage>& all = course->out.stages;
  const auto after = std::upper_bound(all.begin(), all.end(), unit,
                                      [](std::uint64_t u, const MixtureStage& stage) { return u < stage.unit; });
  const MixtureStage& stage = *std::prev(after);
  std::uint64_t end = Order::kNever;
  if (after != all.end()) {
    end = after->unit;
  } else if (const auto next = courses_.next(courses_.of_unit(course->unit))) {
    end = next->unit;
  }
  return std::make_shared<const StageTable>(StageTable{stage, end, stages_->strata_of(stage)});
}

// ---- what they answer

std::shared_ptr<const StageTable> MixtureTables::table(std::uint64_t unit) const {
  if (auto found = made_tables_.find([&](const StageTable& each) { return each.has(unit); })) return found;
  std::shared_ptr<const StageTable> made = make_table(unit);
  made_tables_.keep(made);
  return made;
}

void MixtureTables::find(std::uint64_t first, std::uint64_t stride, std::span<MixtureSlot> out) const {
  for (std::size_t done = 0; done < out.size();) {
    const std::uint64_t unit = first + done * stride;
    const std::shared_ptr<const StageTable> stage = table(unit);
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size() - done, (stage->end - 1 - unit) / stride + 1));
    stage->find(unit, stride, out.subspan(done, count));
    done += count;
  }
}

std::uint64_t MixtureTables::unit_of(std::uint64_t unit, std::uint32_t source, std::uint64_t ordinal) const {
  const std::shared_ptr<const StageTable> found = table(unit);
  const MixtureStage& stage = found->stage;
  const std::uint64_t last = std::min(found->end, end_) - 1;
  const auto member = std::find(stage.sources.begin(), stage.sources.end(), source);
  if (member == stage.sources.end()) return last;
  const auto i = static_cast<std::size_t>(member - stage.sources.begin());
  const std::uint64_t slot = ordinal - stage.given[source];
  if (Wide{slot} * found->strata.total() / stage.weights[i] >= kMostPosition - stage.unit) return last;
  return std::min(last, stage.unit + found->strata.position_of({slot, static_cast<std::uint32_t>(i)}));
}

}  // namespace penstock::shuffle
