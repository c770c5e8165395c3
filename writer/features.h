// Features: the small dataset inside a dataset that names what its records count, such as genes.
//
// One opaque document a feature: its name is the entry, and it has columns as any document has. Thread rule: free
// functions; each uses a DatasetFolder, which is for one thread.
#pragma once

#include "core/batch/value_type.h"
#include "layout/column_types.h"
#include "layout/manifest.h"
#include "writer/dataset_folder.h"

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
};

/// Throws InvalidArgument for no names, empty ones, a name that is there twice, and categories that cannot be.
void check_features(const FeatureTable& features);

/// Writes them into `out`; what its manifest is to say of them. Throws InvalidArgument, IoError.
layout::FeaturesInfo write_features(DatasetFolder& out, const FeatureTable& features);

/// Writes them as a dataset at `path`; its fingerprint. Throws as write_features().
std::string write_features(const std::string& path, const FeatureTable& features);

/// Links or copies those of the dataset in the folder `from`. Throws what combine() does; Corruption where they are not
/// what `features` says.
layout::FeaturesInfo copy_features(const std::string& from, const layout::FeaturesInfo& features, DatasetFolder& out);

}  // namespace penstock::writer
