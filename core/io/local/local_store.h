// LocalStore: files of local and parallel file systems, through a ring of io_uring, pread, direct reads or mappings;
// keeps a bounded number of descriptors open.
#pragma once

#include "core/io/byte_store.h"

#include <cstddef>
#include <memory>

namespace penstock {

/// A store of local files. At most `max_open_files` descriptors are cached, and as many
/// mappings. 0: a quarter of RLIMIT_NOFILE, whose soft limit is raised to the hard one when that is used up; and 8,192
/// mappings. Files are opened O_RDONLY | O_CLOEXEC, must be regular and exactly File::bytes long (else
/// Corruption naming both sizes), and are advised POSIX_FADV_RANDOM. A short read is Corruption, EINTR is repeated.
/// After fork the child uses a cache of its own. Reader::Auto is a ring where one reads here, tried once, and pread for
/// every channel that gets none.
std::shared_ptr<ByteStore> make_local_store(std::size_t max_open_files = 0);

}  // namespace penstock
