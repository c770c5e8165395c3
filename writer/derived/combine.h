// Combining datasets into one, and copying what lies beside the shards of one.
//
// Thread rule: free functions; any thread. Each takes the folder's lock for itself, or is given the folder.
#pragma once

#include "layout/dataset/manifest.h"
#include "writer/files/progress.h"
#include "writer/folder/dataset_folder.h"

#include <string>
#include <vector>

namespace penstock::writer {

/// One dataset at `out` of the shards of `inputs`, in order, without re-encoding: files are hard-linked, else
/// reflinked, else copied. `resume` keeps the finished shards of a run that was killed, and the dataset if it is this
/// very one; `overwrite` replaces a dataset that is there, or what such a run left. `progress` counts bytes, and may
/// throw to stop. Returns the fingerprint, which is that of opening the inputs as one. Throws InvalidArgument where
/// mode, layout, fields, codec or tokenizer differ, or something is there; Corruption, NotFound, IoError.
std::string combine(const std::vector<std::string>& inputs, const std::string& out, bool resume = false,
                    bool overwrite = false, const TellProgress& progress = {});

/// Links or copies the features of the dataset in the folder `from`. Throws what combine() does; Corruption where they
/// are not what `features` says.
layout::FeaturesInfo copy_features(const std::string& from, const layout::FeaturesInfo& features, DatasetFolder& out);

}  // namespace penstock::writer
