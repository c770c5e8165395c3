// describe_unnamed: what lies in a dataset's folder though its manifest does not name it.
#pragma once

#include "layout/dataset/manifest.h"

#include <string>
#include <vector>

namespace penstock::writer {

/// A text for each kind of folder in `path` that `manifest` does not name: shards that are to replace the dataset,
/// shards that it replaced, unfinished ones, and those that are no shards; with what to do. Readers never look at them;
/// they take room. Any thread. Throws NotFound, IoError where the folder cannot be listed.
std::vector<std::string> describe_unnamed(const std::string& path, const layout::Manifest& manifest);

}  // namespace penstock::writer
