#include "tests/fuzz/targets.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace penstock::fuzz {
namespace {

constexpr Target kTargets[] = {
    {"cache_pages", cache_pages, false},
    {"columns", columns, false},
    {"condition", condition, false},
    {"directory", directory, false},
    {"ds_index", ds_index, false},
    {"http_reply", http_reply, false},
    {"http_server", http_server, false},
    {"index", index, false},
    {"json_lines", json_lines, true},
    {"litdata", litdata, true},
    {"llm_c", llm_c, false},
    {"manifest", manifest, true},
    {"mds", mds, true},
    {"megatron", megatron, false},
    {"npy", npy, false},
    {"olmo_gzip", olmo_gzip, false},
    {"pack_table", pack_table, true},
    {"state", state, true},
};

constexpr std::size_t kMostWords = 2000;
std::uint64_t refused = 0;

}  // namespace

std::span<const Target> targets() noexcept {
  return kTargets;
}

const Target* find_target(std::string_view name) noexcept {
  const auto* const found =
      std::ranges::find(kTargets, name, [](const Target& each) { return std::string_view(each.name); });
  return found == std::end(kTargets) ? nullptr : found;
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "tests/fuzz: %s\n", what);
  std::abort();
}

void check_message(const Error& error) {
  ++refused;
  require(std::string_view(error.what()).size() <= kMostWords, "an error of more than 2,000 characters");
}

std::uint64_t refusals() noexcept {
  return refused;
}

std::size_t take_choice(Input& input, std::size_t options) noexcept {
  if (input.empty()) return 0;
  const auto choice = std::to_integer<std::size_t>(input.front()) % options;
  input = input.subspan(1);
  return choice;
}

std::pair<std::string, Input> split_at_zero(Input input) {
  const auto zero = std::ranges::find(input, std::byte{0});
  const auto before = static_cast<std::size_t>(zero - input.begin());
  return {text_of(input.first(before)), input.subspan(std::min(before + 1, input.size()))};
}

}  // namespace penstock::fuzz
