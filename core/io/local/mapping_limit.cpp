#include "core/io/local/mapping_limit.h"

#include <cstdint>
#include <fstream>
#include <string>

namespace penstock {
namespace {

/// An eighth of what the kernel allows by default.
constexpr std::size_t kWhereUnknown = 8192;

}  // namespace

std::size_t mappings_share() {
  std::uint64_t allowed = 0;
  if (!(std::ifstream("/proc/sys/vm/max_map_count") >> allowed)) return kWhereUnknown;
  std::ifstream maps("/proc/self/maps");
  if (!maps) return kWhereUnknown;
  std::uint64_t mapped = 0;
  for (std::string line; std::getline(maps, line);) ++mapped;
  const std::uint64_t share = allowed / 4 * 3;
  return share > mapped ? static_cast<std::size_t>(share - mapped) : 1;
}

}  // namespace penstock
