// Links: where a dataset's symbolic links may lead: to a file below the dataset's own folder; and where that lies below
// R/snapshots/, as in a cache of Hugging Face, below R/blobs, which all of its files are links into.
//
// Thread rule: free functions; any thread.
#pragma once

#include "core/io/byte_store.h"
#include "core/io/file.h"

#include <string>

namespace penstock {

/// Throws Corruption if `path` leads out of its dataset, as `links` has it: nothing for Links::Follow. NotFound,
/// IoError.
void check_links(const std::string& path, Links links);

/// The same for an open file of a dataset whose real root is known; nothing for others.
void check_links(int fd, const File& file);

/// `path` without links. Throws NotFound, IoError.
std::string resolve_links(const std::string& path);

}  // namespace penstock
