// annotate: adds, replaces and removes columns of a published dataset; nothing else of it changes.
#pragma once

#include "core/rows/value_type.h"
#include "layout/values/column_types.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

/// A column for all entries of a dataset.
struct NewColumn {
  ValueType type;
  layout::Categories categories;      // that codes count; empty where it is none
  bool declared = false;              // every shard's table has all of them, in this order; else those that it needs
  std::span<const std::byte> values;  // [entries, dims…], packed; of a category int32 codes, -1 where there is none
};

/// Publishes the dataset at `path` with `added` columns, which take the place of those of their name or come last, and
/// without those that `removed` names. Files of records and entries are hard-linked, else copied, into shards of the
/// next generation; by one rename these take the place of the old ones, which are removed then. The fingerprint, which
/// is returned, stays. `progress(done, shards)` is called after each shard and may throw to stop. Throws
/// InvalidArgument (no document, another number of values, a code that cannot be, no such column, a writer at work),
/// Corruption, NotFound, IoError.
std::string annotate(const std::string& path, const std::vector<NewColumn>& added,
                     const std::vector<std::string>& removed,
                     const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace penstock::writer
