// make_folder: a folder that lasts, with those above it.
//
// Thread rule: free functions; any thread.
#pragma once

#include <string>

namespace penstock::writer {

/// False if it is there. Folders above it that are not there are made too, and synced. Throws IoError.
bool make_folder(const std::string& path);

/// fsync of the folder that `path` is in. Throws IoError.
void sync_parent(const std::string& path);

/// fsync of all folders above `path`, as far as they may be opened: a run that was killed may have made them, and not
/// synced them. Throws IoError.
void sync_above(const std::string& path);

}  // namespace penstock::writer
