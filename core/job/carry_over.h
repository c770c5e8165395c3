// CarryOver: where a position of one job lies in another, whose observations may be of another size.
//
// A position counts observations. Where both jobs have windows, of other sizes, records are what is carried over.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock {

struct CarryOver {
  std::optional<std::uint64_t>
      position;  // in the job now; none: what is counted there and here cannot be compared, or it is no position
  std::string saved_unit;  // what is counted: "windows of 64", "documents"
  std::string unit;        // the same of the job now
};

/// The last position before which there are no more records than before the saved one, where both have windows: of one
/// size, or of the sizes that stages of an order say. `position` where both count the same. `saved` and `current` are
/// jobs that job_difference() has read.
CarryOver carry_over(std::string_view saved, std::string_view current, std::uint64_t position);

}  // namespace penstock
