#include "shuffle/mixture_plan.h"

#include "core/base/error.h"
#include "core/job/position.h"
#include "shuffle/permutation.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace penstock::shuffle {
namespace {

constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 26;  // of a group that is mixed, in seconds

[[noreturn]] void refuse(const std::string& why) {
  raise(ErrorKind::InvalidArgument, "{}", why);
}

std::unique_ptr<const MixtureTables> make_tables(MixtureSpec made) {
  const auto spec = std::make_shared<const MixtureSpec>(std::move(made));
  MixtureCourses courses(spec);
  return std::make_unique<const MixtureTables>(std::make_shared<const MixtureStages>(spec->names, spec->caps),
                                               std::move(courses));
}

}  // namespace

MixturePlan::MixturePlan(MixtureSpec spec) : tables_(make_tables(std::move(spec))) {
  set_end();
  if (!this->spec().end) return;
  const std::uint64_t end = position_of(*this->spec().end);
  const MixtureCourse& last = courses().list().back();
  if (end > last.begin) return;
  refuse(fmt::format("end: the run ends at position {}, but stage {} begins at {}: raise the end or leave it out",
                     with_commas(end), last.number, with_commas(last.begin)));
}

MixturePlan::MixturePlan(std::unique_ptr<const MixtureTables> tables) : tables_(std::move(tables)) {
  set_end();
}

std::shared_ptr<const MixturePlan> MixturePlan::with(std::shared_ptr<const Steering> steering) const {
  static const Steering nothing({});
  const Steering& before = courses().steering() == nullptr ? nothing : *courses().steering();
  const Steering& after = steering ? *steering : nothing;
  const std::size_t same = before.common(after);
  std::uint64_t position = kMostPosition;  // where they begin to differ
  if (same < before.size()) position = std::min(position, before.begin(same));
  if (same < after.size()) position = std::min(position, after.begin(same));
  MixtureCourses changed = courses().with(std::move(steering), same);
  const MixtureCourse course = changed.at(position);
  const std::uint64_t unit = course.unit + (position - course.begin) / course.parts;
  return std::shared_ptr<const MixturePlan>(
      new MixturePlan(std::make_unique<const MixtureTables>(*tables_, std::move(changed), unit)));
}

void MixturePlan::set_end() {
  if (tables_->end() != Order::kNever) {
    const MixtureCourse last = last_course();
    const Wide position = last.begin + Wide{tables_->end() - last.unit} * last.parts;
    if (position <= kMostPosition) last_position_ = static_cast<std::uint64_t>(position);
  }
  end_ = last_position_;
  if (spec().end) end_ = std::min(end_, position_of(*spec().end));
}

// The one in which no source is left.
MixtureCourse MixturePlan::last_course() const {
  return courses().of_unit(tables_->end() - 1);
}

// ---- what it answers

std::uint64_t MixturePlan::short_group() const {
  if (last_position_ == Order::kNever) return Order::kNever;
  const MixtureCourse last = last_course();
  if (last.parts == 1 || (tables_->end() - last.unit) % spec().group == 0) return Order::kNever;
  return static_cast<std::uint64_t>(last.group_begin(tables_->end(), spec().group));
}

// Units of a group: fewer in the run's last one, where no source is left.
std::uint64_t MixturePlan::group_units(const MixtureCourse& course, std::uint64_t group) const {
  const std::uint64_t begin = course.unit + group * spec().group;
  return begin >= tables_->end() ? 0 : std::min(spec().group, tables_->end() - begin);
}

// The last unit that begins in the group of a position.
std::uint64_t MixturePlan::last_unit_of_group(const MixtureCourse& course, std::uint64_t position) const {
  const std::uint64_t past = position - course.begin;
  const std::uint64_t group = spec().group;
  const std::uint64_t end = course.unit + (course.parts == 1 ? past + 1 : (past / (group * course.parts) + 1) * group);
  return std::min(end, tables_->end()) - 1;
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
    const MixtureCourse course = courses().at(position);
    const std::optional<MixtureCourse> next = courses().next(course);
    const std::uint64_t end = next ? next->begin : Order::kNever;
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size() - done, (end - 1 - position) / stride + 1));
    const std::span<MixtureSlot> slots = out.subspan(done, count);
    if (course.parts == 1) {
      if (last_position_ - position <= (count - 1) * stride || position >= last_position_) {
        raise_over(position + (count - 1) * stride);
      }
      tables_->find(course.unit + (position - course.begin), stride, slots);
    } else {
      find_parts(course, position, stride, slots);
    }
    done += count;
  }
}

// Units of a course that gives them in parts: each group has a permutation.
void MixturePlan::find_parts(const MixtureCourse& course, std::uint64_t first, std::uint64_t stride,
                             std::span<MixtureSlot> out) const {
  std::array<std::uint64_t, kKernelBlock> places;
  const std::uint64_t whole = spec().group * course.parts;
  std::shared_ptr<const StageTable> stage;
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
      const std::uint64_t unit = course.unit + group * spec().group + places[i] / course.parts;
      if (!stage || !stage->has(unit)) stage = tables_->table(unit);
      stage->find(unit, 1, {&slot, 1});
      slot.part = static_cast<std::uint32_t>(places[i] % course.parts);
      slot.parts = static_cast<std::uint32_t>(course.parts);
      slot.window_number = course.window_number;
    }
  }
}

void MixturePlan::count(std::uint64_t position, std::span<std::uint64_t> out) const {
  count_one_by_one(position, count_groups(position, out), out);
}

void MixturePlan::estimate(std::uint64_t position, std::span<std::uint64_t> out) const {
  const std::uint64_t begun = count_groups(position, out);
  if (begun == 0) return;
  const MixtureCourse course = courses().at(position - 1);
  const std::uint64_t group = (position - 1 - course.begin) / (spec().group * course.parts);
  const std::uint64_t units = group_units(course, group);
  const std::uint64_t first = course.unit + group * spec().group;
  std::vector<std::uint64_t> before(out.size());
  std::vector<std::uint64_t> after(out.size());
  tables_->count(first, before);
  tables_->count(first + units, after);
  for (std::size_t s = 0; s < out.size(); ++s) {
    out[s] += static_cast<std::uint64_t>(Wide{after[s] - before[s]} * begun / units);
  }
}

// Those of whole groups before a position; how many come after them. Only the last group can be one that is begun.
// Units of a stage of the list all have as many parts, whatever was set in it.
std::uint64_t MixturePlan::count_groups(std::uint64_t position, std::span<std::uint64_t> out) const {
  if (position > last_position_) raise_over(position);
  std::fill(out.begin(), out.end(), 0);
  std::vector<std::uint64_t> before(out.size());
  std::vector<std::uint64_t> after(out.size());
  std::uint64_t begun = 0;
  const std::vector<MixtureCourse>& list = courses().list();
  for (std::size_t i = 0; i < list.size() && list[i].begin < position; ++i) {
    const MixtureCourse& course = list[i];
    const std::uint64_t end = i + 1 < list.size() ? std::min(position, list[i + 1].begin) : position;
    const std::uint64_t past = end - course.begin;
    const std::uint64_t group = spec().group * course.parts;
    begun = course.parts == 1 || end == last_position_ ? 0 : past % group;
    tables_->count(course.unit, before);
    tables_->count(course.unit + (past - begun) / course.parts, after);
    for (std::size_t s = 0; s < out.size(); ++s) out[s] += (after[s] - before[s]) * course.parts;
  }
  return begun;
}

// Adds the last `begun` observations before `end`.
void MixturePlan::count_one_by_one(std::uint64_t end, std::uint64_t begun, std::span<std::uint64_t> out) const {
  if (begun > kMostCounted) {
    refuse(fmt::format(
        "position {}: {} observations of its group come before it, and are counted one by one: use a smaller group= "
        "than {}, or count where a group begins, at {}",
        with_commas(end), with_commas(begun), with_commas(spec().group), with_commas(end - begun)));
  }
  std::array<MixtureSlot, kKernelBlock> slots;
  for (std::uint64_t done = 0; done < begun; done += slots.size()) {
    const auto some = std::span(slots).first(std::min<std::uint64_t>(begun - done, slots.size()));
    find(end - begun + done, 1, some);
    for (const MixtureSlot& slot : some) ++out[slot.source];
  }
}

void MixturePlan::count_begun(std::uint64_t position, std::span<std::uint64_t> out) const {
  if (position >= last_position_) raise_over(position);
  tables_->count(last_unit_of_group(courses().at(position), position) + 1, out);
}

std::uint64_t MixturePlan::certain_before(std::uint32_t source, std::uint64_t position) const {
  std::vector<std::uint64_t> given(spec().names.size());
  tables_->count(last_unit_of_group(courses().at(position), position), given);
  return given[source];
}

std::uint64_t MixturePlan::group_end(std::uint64_t position) const {
  const MixtureCourse course = courses().at(position);
  if (course.parts == 1) return position + 1;
  const std::uint64_t group = spec().group * course.parts;
  return std::min(course.begin + ((position - course.begin) / group + 1) * group, last_position_);
}

std::uint64_t MixturePlan::unit_end(std::uint64_t position, std::uint32_t source, std::uint64_t ordinal) const {
  const MixtureCourse course = courses().at(position);
  const std::uint64_t unit = tables_->unit_of(last_unit_of_group(course, position), source, ordinal);
  const Wide size = course.parts == 1 ? 1 : Wide{spec().group} * course.parts;
  return static_cast<std::uint64_t>(std::min<Wide>(course.group_begin(unit, spec().group) + size, last_position_));
}

std::vector<std::uint32_t> MixturePlan::sources_at(std::uint64_t position) const {
  return tables_->table(last_unit_of_group(courses().at(position), position))->stage.sources;
}

// ---- all stages

// Where a stage of a course begins, and of one that begins a ramp where that leads.
void MixturePlan::fill_in(MixtureStage& stage, const MixtureCourse& course) const {
  stage.begin = static_cast<std::uint64_t>(course.group_begin(stage.unit, spec().group));
  stage.begin_tokens = course.begin_tokens + Wide{stage.begin - course.begin} * course.window;
  stage.window = course.window;
  if (course.ramp == 0 || stage.unit != course.unit) return;
  stage.ramp = course.ramp;
  std::vector<std::uint64_t> weights = courses().weights(course);
  std::uint64_t common = 0;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    if (stage.given[s] >= spec().caps[s]) weights[s] = 0;
    common = std::gcd(common, weights[s]);
  }
  stage.sources = rules().sources_by_name(weights);
  stage.weights.clear();
  for (const std::uint32_t source : stage.sources) stage.weights.push_back(weights[source] / common);
}

std::vector<MixtureStage> MixturePlan::stages() const {
  std::vector<MixtureStage> all;
  std::vector<std::uint64_t> given(spec().names.size());
  for (std::optional<MixtureCourse> course = courses().at(0); course; course = courses().next(*course)) {
    StretchStages out = rules().stages(courses().stretch(*course), std::move(given));
    given = std::move(out.given);
    for (MixtureStage& stage : out.stages) {
      if (stage.is_step) continue;
      fill_in(stage, *course);
      all.push_back(std::move(stage));
    }
  }
  return all;
}

std::size_t MixturePlan::stage_at(std::uint64_t position) const {
  const std::vector<MixtureStage> all = stages();
  const auto after = std::upper_bound(all.begin(), all.end(), position,
                                      [](std::uint64_t p, const MixtureStage& stage) { return p < stage.begin; });
  return static_cast<std::size_t>(after - all.begin()) - 1;
}

}  // namespace penstock::shuffle
