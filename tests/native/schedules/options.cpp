#include "tests/native/schedules/options.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

namespace penstock::schedules {
namespace {

constexpr const char* kHelp =
    "penstock_schedules_tests: the engine under schedules that this program decides; beside the options of GoogleTest\n"
    "  --schedules=N   so many random schedules\n"
    "  --first=N       the first one's number\n"
    "  --small=N       at most N schedules of each small case; 0: all\n"
    "  --json=PATH     the record of what was tried\n"
    "  --schedule=N    random schedule N alone, with its trace\n"
    "  --case=I --choices=TEXT  one schedule of a small case, with its trace\n"
    "  --trace=N       lines of a trace; 0: all\n";

Options& the_options() {
  static Options options;
  return options;
}

std::vector<Tried>& record() {
  static std::vector<Tried> all;
  return all;
}

char present_text[4096] = "";

void say_where(int number) {
  static_cast<void>(!::write(STDERR_FILENO, present_text, std::strlen(present_text)));
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

const Options& options() {
  return the_options();
}

bool parse_options(int count, char** arguments) {
  Options& all = the_options();
  const std::map<std::string, std::function<void(const std::string&)>> known = {
      {"--schedules", [&](const std::string& value) { all.schedules = std::stoull(value); }},
      {"--first", [&](const std::string& value) { all.first = std::stoull(value); }},
      {"--small", [&](const std::string& value) { all.small = std::stoull(value); }},
      {"--json", [&](const std::string& value) { all.json = value; }},
      {"--schedule", [&](const std::string& value) { all.schedule = std::stoull(value); }},
      {"--case", [&](const std::string& value) { all.small_case = std::stoull(value); }},
      {"--choices", [&](const std::string& value) { all.choices = value; }},
      {"--trace", [&](const std::string& value) { all.trace = std::stoull(value); }},
  };
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const auto option = known.find(argument.substr(0, equals));
    try {
      if (option == known.end() || equals == std::string::npos) throw std::invalid_argument(argument);
      option->second(argument.substr(equals + 1));
    } catch (const std::logic_error&) {
      fmt::print(stderr, "{}: not known\n{}", argument, kHelp);
      return false;
    }
  }
  return true;
}

void note(const Tried& tried) {
  record().push_back(tried);
}

void write_record() {
  if (options().json.empty()) return;
  std::ofstream out(options().json);
  out << "[";
  for (const Tried& each : record()) {
    out << fmt::format("{}\n  {{\"name\": \"{}\", \"schedules\": {}, \"steps\": {}, \"all\": {}}}",
                       &each == &record().front() ? "" : ",", each.name, each.schedules, each.steps, each.is_all);
  }
  out << "\n]\n";
}

void catch_crashes() {
  static char memory[64 << 10];
  const stack_t stack{memory, 0, sizeof memory};
  ::sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = say_where;
  action.sa_flags = SA_ONSTACK;
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) ::sigaction(number, &action, nullptr);
}

void note_present(const std::string& command) {
  std::snprintf(present_text, sizeof present_text, "crashed; again: penstock_schedules_tests %s\n", command.c_str());
}

}  // namespace penstock::schedules
