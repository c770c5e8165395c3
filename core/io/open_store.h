// open_store: from a path or URL to the store that holds it.
//
// Pure but for the stores that it may make; any thread.
#pragma once

#include "core/io/byte_store.h"

#include <memory>
#include <string>

namespace penstock {

/// A file or folder in a store.
struct Location {
  std::shared_ptr<ByteStore> store;
  std::string path;
};

/// Where `url` is: a path or a file:// URL is in `local`, the process's store of local files. Throws InvalidArgument
/// for other schemes, and for a file URL that names another host or is not well formed.
Location open_store(const std::string& url, const std::shared_ptr<ByteStore>& local);

}  // namespace penstock
