#include "writer/shards/features.h"

#include "core/base/error.h"

#include <string_view>
#include <unordered_set>

namespace penstock::writer {

void check_features(const FeatureTable& features) {
  if (features.names.empty()) raise(ErrorKind::InvalidArgument, "features: there are none");
  std::unordered_set<std::string_view> names;
  for (const std::string& name : features.names) {
    if (name.empty()) raise(ErrorKind::InvalidArgument, "features: feature {} has no name", with_commas(names.size()));
    if (!names.insert(name).second) {
      raise(ErrorKind::InvalidArgument, "features: the name \"{}\" is there twice", excerpt(name));
    }
  }
  try {
    layout::check_categories(features.columns, features.categories);
  } catch (const Error& error) {
    raise(error.kind(), "features: {}", error.what());
  }
}

}  // namespace penstock::writer
