// SourceIdentity: what a job's state says of one source, enough to tell another dataset or view from it.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

struct SourceIdentity {
  std::string fingerprint;    // of the dataset: hex text; it alone decides whether the content is the same
  std::uint64_t shards = 0;   // for messages about another dataset (0: a collection, which has none) …
  std::uint64_t records = 0;  // … records, entries where there are no records, or observations of a collection
  std::string view;           // canonical JSON of what the view is
  std::string name;           // by which stages name it; empty: they use its number
};

}  // namespace penstock
