#include "layout/dataset/format.h"

#include <fmt/format.h>

namespace penstock::layout {
namespace {

// Digits alone, no more than surely fit, and no zeros in front but those that pad to `width`.
std::optional<std::uint64_t> parse_number(std::string_view digits, std::size_t width) noexcept {
  constexpr std::size_t kMaxDigits = 12;
  if (digits.size() < width || digits.size() > kMaxDigits || (digits.size() > width && digits[0] == '0')) return {};
  std::uint64_t number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return {};
    number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return number;
}

}  // namespace

std::string shard_name(std::uint64_t number, std::uint64_t generation) {
  return generation == 0 ? fmt::format("{:05}", number) : fmt::format("{:05}.{}", number, generation);
}

std::optional<ShardId> parse_shard_name(std::string_view name) noexcept {
  const std::size_t dot = name.find('.');
  const std::optional<std::uint64_t> number = parse_number(name.substr(0, dot), 5);
  if (!number) return {};
  if (dot == std::string_view::npos) return ShardId{0, *number};
  const std::optional<std::uint64_t> generation = parse_number(name.substr(dot + 1), 1);
  if (!generation || *generation == 0) return {};
  return ShardId{*generation, *number};
}

std::string features_name(std::uint64_t generation) {
  return generation == 0 ? std::string(kFeaturesName) : fmt::format("{}.{}", kFeaturesName, generation);
}

std::optional<std::uint64_t> parse_features_name(std::string_view name) noexcept {
  if (!name.starts_with(kFeaturesName)) return {};
  name.remove_prefix(kFeaturesName.size());
  if (name.empty()) return 0;
  const std::optional<std::uint64_t> generation = name[0] == '.' ? parse_number(name.substr(1), 1) : std::nullopt;
  return generation == 0 ? std::nullopt : generation;
}

}  // namespace penstock::layout
