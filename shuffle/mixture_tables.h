// MixtureTables: what each source has given before any unit of a mixture, and which slot a unit is.
//
// Of 100,000 stages neither tables nor counts are kept: what sources have given is noted at every 128th course, from
// there on it is counted, and tables are made when a unit of their stage is asked for, and few are kept. Any thread.
#pragma once

#include "core/base/newest.h"
#include "shuffle/mixture_courses.h"
#include "shuffle/mixture_stages.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace penstock::shuffle {

/// One stage, and how its units go to its sources.
struct StageTable {
  MixtureStage stage;  // its positions are not filled in
  std::uint64_t end = Order::kNever;
  Strata strata;

  [[nodiscard]] bool has(std::uint64_t unit) const noexcept { return stage.unit <= unit && unit < end; }
  /// out[i] = unit first + i * stride, of the stage; in one part.
  void find(std::uint64_t first, std::uint64_t stride, std::span<MixtureSlot> out) const;
  /// out[s] = units of source s before `unit`.
  void count(std::uint64_t unit, std::span<std::uint64_t> out) const;
};

class MixtureTables {
 public:
  /// Throws InvalidArgument where a stage's sources have given their caps before it ends, and it is not the last.
  MixtureTables(std::shared_ptr<const MixtureStages> stages, MixtureCourses courses);
  /// Of other courses, which are those of `before` up to `unit`, where one of them begins.
  MixtureTables(const MixtureTables& before, MixtureCourses courses, std::uint64_t unit);

  [[nodiscard]] const MixtureCourses& courses() const noexcept { return courses_; }
  [[nodiscard]] const std::shared_ptr<const MixtureStages>& rules() const noexcept { return stages_; }
  /// The unit at which no source is left, or Order::kNever.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

  /// Of the stage that has a unit; from end() on, of the last one.
  [[nodiscard]] std::shared_ptr<const StageTable> table(std::uint64_t unit) const;
  /// out[i] = unit first + i * stride, which is before end(); in one part.
  void find(std::uint64_t first, std::uint64_t stride, std::span<MixtureSlot> out) const;
  /// out[s] = units of source s before `unit`.
  void count(std::uint64_t unit, std::span<std::uint64_t> out) const { table(unit)->count(unit, out); }
  /// Which unit of the stage that has `unit` is unit `ordinal` of a source; the stage's last one, where that does not
  /// come in it.
  [[nodiscard]] std::uint64_t unit_of(std::uint64_t unit, std::uint32_t source, std::uint64_t ordinal) const;

 private:
  // What sources have given where a course begins.
  struct Notes {
    std::vector<std::uint64_t> units;
    std::vector<std::uint64_t> given;  // of each unit, by source
  };
  struct CourseStages {
    std::uint64_t unit = 0;  // of the course
    StretchStages out;
  };

  void note(const MixtureCourse& course, const std::vector<std::uint64_t>& given);
  [[nodiscard]] bool is_noted(const MixtureCourse& course) const;
  void settle();
  [[noreturn]] void refuse_end(const MixtureCourse& course, std::uint64_t end, const MixtureCourse& next) const;
  [[nodiscard]] std::vector<std::uint64_t> given_at(const MixtureCourse& course) const;
  [[nodiscard]] std::shared_ptr<const CourseStages> course_stages(std::uint64_t unit) const;
  [[nodiscard]] std::shared_ptr<const StageTable> make_table(std::uint64_t unit) const;

  const std::shared_ptr<const MixtureStages> stages_;
  const MixtureCourses courses_;
  Notes notes_;
  std::uint64_t end_ = Order::kNever;
  mutable Newest<StageTable, 16> made_tables_;
  mutable Newest<CourseStages, 4> made_courses_;
};

}  // namespace penstock::shuffle
