// Any bytes as a condition: what parses has a text that parses to the same text.
#include "layout/where/condition.h"

#include "tests/fuzz/targets.h"

namespace penstock::fuzz {

bool condition(Input input) {
  std::string text;
  if (!accepts([&] { text = layout::condition_text(layout::parse_condition(view_of(input))); })) return false;
  require(layout::condition_text(layout::parse_condition(text)) == text, "another condition's text");
  return true;
}

}  // namespace penstock::fuzz
