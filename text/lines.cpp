#include "text/lines.h"

#include <cstring>

namespace penstock::text {
namespace {

constexpr std::string_view kMark = "\xef\xbb\xbf";

bool is_space(char byte) noexcept {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool is_blank(const char* begin, const char* end) noexcept {
  while (begin != end && is_space(*begin)) ++begin;
  return begin == end;
}

const char* without_space(const char* begin, const char* end) noexcept {
  while (end != begin && is_space(end[-1])) --end;
  return end;
}

const char* without_newline(const char* begin, const char* end) noexcept {
  while (end != begin && (end[-1] == '\n' || end[-1] == '\r')) --end;
  return end;
}

}  // namespace

Lines split_lines(std::string_view block, bool is_json, bool strip_mark) {
  Lines found;
  const char* const data = block.data();
  const char* const stop = data + block.size();
  const char* next = nullptr;
  for (const char* begin = data; begin != stop; begin = next, ++found.lines) {
    const auto* const newline =
        static_cast<const char*>(std::memchr(begin, '\n', static_cast<std::size_t>(stop - begin)));
    next = newline == nullptr ? stop : newline + 1;
    const char* const end = is_json ? without_space(begin, next) : without_newline(begin, next);
    if (is_json && strip_mark && begin == data &&
        std::string_view(begin, static_cast<std::size_t>(end - begin)).starts_with(kMark)) {
      begin += kMark.size();
    }
    if (is_blank(begin, end)) continue;
    found.begins.push_back(static_cast<std::uint64_t>(begin - data));
    found.ends.push_back(static_cast<std::uint64_t>(end - data));
    found.numbers.push_back(found.lines);
  }
  return found;
}

}  // namespace penstock::text
