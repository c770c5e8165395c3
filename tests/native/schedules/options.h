// The command line of penstock_schedules_tests, the record of what it tried, and what it says when it crashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace penstock::schedules {

struct Options {
  std::uint64_t schedules = 12'000;  // random ones …
  std::uint64_t first = 0;           // … from this number on
  std::uint64_t small = 300;         // of each small case, at most; 0: all
  std::optional<std::uint64_t> schedule = {};
  std::size_t small_case = 0;
  std::string choices = {};
  std::size_t trace = 120;  // lines; 0: all
  std::string json = {};
};

const Options& options();
/// Sets options(). False, and the help is printed, where there is one that is not known.
bool parse_options(int count, char** arguments);

/// What was tried.
struct Tried {
  std::string name;
  std::uint64_t schedules = 0;
  std::uint64_t steps = 0;
  bool is_all = false;  // there are no others
};
void note(const Tried& tried);
/// Of what was noted, where --json says.
void write_record();

/// A crash prints the command that repeats it.
void catch_crashes();
void note_present(const std::string& command);

}  // namespace penstock::schedules
