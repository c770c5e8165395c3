#include "layout/format.h"

#include <fmt/format.h>

namespace penstock::layout {

std::string shard_name(std::uint64_t number) {
  return fmt::format("{:05}", number);
}

std::int64_t shard_number(std::string_view name) noexcept {
  constexpr std::size_t kMaxDigits = 12;
  if (name.size() < 5 || name.size() > kMaxDigits || (name.size() > 5 && name[0] == '0')) return -1;
  std::int64_t number = 0;
  for (const char digit : name) {
    if (digit < '0' || digit > '9') return -1;
    number = number * 10 + (digit - '0');
  }
  return number;
}

}  // namespace penstock::layout
