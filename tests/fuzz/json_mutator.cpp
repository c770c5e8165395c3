#include "tests/fuzz/json_mutator.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace penstock::fuzz {
namespace {

constexpr std::string_view kValues[] = {"0",
                                        "1",
                                        "2",
                                        "-1",
                                        "255",
                                        "4096",
                                        "4294967295",
                                        "4294967296",
                                        "1099511627776",
                                        "9007199254740993",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "1e400",
                                        "0.5",
                                        "1e3",
                                        "-0.0",
                                        "null",
                                        "true",
                                        "[]",
                                        "{}",
                                        "\"\"",
                                        "\"x\"",
                                        "\"\\ud800\"",
                                        "\"\\u0000\"",
                                        "\"..\"",
                                        "\"../x\"",
                                        "\"x/y\"",
                                        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"};

using Place = std::pair<std::size_t, std::size_t>;  // [begin, end)

std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
  return std::min(at + 1, text.size());
}

// Scalars and keys, lists and objects.
std::vector<Place> values_of(std::string_view text) {
  std::vector<Place> found;
  std::vector<std::size_t> open;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '[' || c == '{') {
      open.push_back(at++);
    } else if (c == ']' || c == '}') {
      ++at;
      if (open.empty()) continue;
      found.emplace_back(open.back(), at);
      open.pop_back();
    } else if (std::string_view(" \t\r\n,:").find(c) != std::string_view::npos) {
      ++at;
    } else {
      const std::size_t end =
          c == '"' ? end_of_string(text, at) : std::min(text.find_first_of(" \t\r\n,:[]{}\"", at), text.size());
      found.emplace_back(at, end);
      at = end;
    }
  }
  return found;
}

}  // namespace

std::string mutate_json(std::string_view text, unsigned seed) {
  std::mt19937 draw(seed);
  const std::size_t zero = std::min(text.find('\0'), text.size());
  std::string json(text.substr(0, zero));
  for (std::size_t left = 1 + draw() % 3; left > 0; --left) {
    const std::vector<Place> values = values_of(json);
    if (values.empty()) break;
    const auto [begin, end] = values[draw() % values.size()];
    const auto [other, other_end] = values[draw() % values.size()];
    const std::string copied = json.substr(other, other_end - other);
    switch (draw() % 4) {
      case 0:
      case 1: json.replace(begin, end - begin, kValues[draw() % std::size(kValues)]); break;
      case 2: json.replace(begin, end - begin, copied); break;
      default:
        if (draw() % 2 == 0) {
          json.insert(end, "," + copied);
        } else {
          json.erase(begin, end - begin + (end < json.size() && json[end] == ',' ? 1 : 0));
        }
    }
  }
  return json.append(text.substr(zero));
}

}  // namespace penstock::fuzz
