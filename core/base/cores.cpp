#include "core/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace penstock {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

std::vector<std::string> words_of(const std::string& line, char separator) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; std::getline(in, word, separator);) words.push_back(std::move(word));
  return words;
}

bool has_word(const std::string& list, std::string_view word) {
  const std::vector<std::string> words = words_of(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

double quotient(double quota_us, double period_us) {
  return quota_us > 0 && period_us > 0 ? quota_us / period_us : kNone;
}

// "150000 100000"; "max 100000" is no number, so no quota.
double quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0;
  double period = 0;
  return file >> quota >> period ? quotient(quota, period) : kNone;
}

// -1 is no quota.
double quota_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  return quota_file >> quota && period_file >> period ? quotient(quota, period) : kNone;
}

// This process's groups of each hierarchy, as /proc/self/cgroup names them.
struct Groups {
  std::optional<std::string> v2;
  std::optional<std::string> v1;  // of the hierarchy with the controller "cpu"
};

Groups groups_of(const std::string& root) {
  Groups groups;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // number:controllers:group
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) groups.v2 = line.substr(second + 1);
    if (has_word(controllers, "cpu")) groups.v1 = line.substr(second + 1);
  }
  return groups;
}

// Where `group` is below `mount`, which shows the tree from the group `top` on. A container may see only its own
// group, mounted as if it were the top.
std::string path_below(const std::string& top, const std::string& group) {
  if (group.empty() || group.front() != '/' || group == "/") return "";
  if (top == "/") return group;
  const bool inside =
      group.compare(0, top.size(), top) == 0 && (group.size() == top.size() || group[top.size()] == '/');
  return inside ? group.substr(top.size()) : "";
}

template <typename Quota>
double lowest(const std::string& mount, std::string below, Quota quota) {
  double found = quota(mount);
  while (!below.empty()) {
    found = std::min(found, quota(mount + below));
    below.resize(below.rfind('/'));
  }
  return found;
}

unsigned affinity_cores() {
  for (std::size_t most = CPU_SETSIZE; most <= (std::size_t{1} << 20U); most *= 2) {
    cpu_set_t* const set = CPU_ALLOC(most);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !known && errno == EINVAL;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return static_cast<unsigned>(count);
    if (!too_small) break;
  }
  return std::thread::hardware_concurrency();
}

}  // namespace

double cpu_quota(const std::string& root) {
  const Groups groups = groups_of(root);
  double found = kNone;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // number parent device top mount options [tags …] - type source options
    const std::vector<std::string> words = words_of(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (dash - words.begin() < 6 || words.end() - dash < 4) continue;
    const std::string& top = words[3];
    const std::string mount = root + words[4];
    if (dash[1] == "cgroup2" && groups.v2) {
      found = std::min(found, lowest(mount, path_below(top, *groups.v2), quota_v2));
    }
    if (dash[1] == "cgroup" && groups.v1 && has_word(dash[3], "cpu")) {
      found = std::min(found, lowest(mount, path_below(top, *groups.v1), quota_v1));
    }
  }
  return found;
}

unsigned usable_cores(std::uint64_t processes, unsigned cores, const std::string& root) {
  const double share =
      std::min<double>(cores, cpu_quota(root)) / static_cast<double>(std::max<std::uint64_t>(processes, 1));
  return std::max(1U, static_cast<unsigned>(share));
}

unsigned usable_cores(std::uint64_t processes) {
  return usable_cores(processes, affinity_cores(), "");
}

}  // namespace penstock
