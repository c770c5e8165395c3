// Features: the small dataset inside a dataset that names what its records count, such as genes.
//
// One opaque document a feature: its name is the entry, and it has columns as any document has. Values and a
// free function; any thread.
#pragma once

#include "core/rows/value_type.h"
#include "layout/values/column_types.h"

#include <cstddef>
#include <string>
#include <vector>

namespace penstock::writer {

/// Names in the order of their numbers; of each column the type, the categories in the order of their codes, and the
/// values of all features as a writer takes them.
struct FeatureTable {
  std::vector<std::string> names;
  ValueTypes columns;
  std::vector<layout::Categories> categories;
  std::vector<std::vector<std::byte>> values;
  std::string task_json = "null";  // any JSON: what is kept of the features beside their values
};

/// Throws InvalidArgument for no names, empty ones, a name that is there twice, and categories that cannot be.
void check_features(const FeatureTable& features);

}  // namespace penstock::writer
