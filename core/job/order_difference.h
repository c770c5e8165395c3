// OrderDifference: what an order says of the one that a state was saved with (Order::difference_to). A value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace penstock {

/// Keys of sources are JSON: their names, or their numbers where they have none.
using SourceKeys = std::set<std::string>;

struct OrderDifference {
  struct Text {
    std::string text;
    bool is_of_size = false;  // follows from another dataset or window, where there is one
  };
  /// In the order in which a message tells them.
  std::vector<Text> texts = {};

  /// The sources that each order uses before the position: of others no difference counts. None: all sources.
  std::optional<SourceKeys> saved_sources = {};
  std::optional<SourceKeys> sources = {};
  /// Of a saved source that is not used nothing is compared, so what is unknown of any is refused.
  bool refuses_unknown = false;
  /// Whether each source has an order of its own in both: then any may come and go, and `given` has …
  bool are_mixed = false;
  /// Whether weights can be set while either runs.
  bool are_steered = false;
  /// True if neither is, and both say their caps, which are left to the caller, and the stages that were asked for.
  bool say_asked = false;
  /// … about how many observations the saved job had given of each.
  std::map<std::string, std::uint64_t> given = {};
};

}  // namespace penstock
