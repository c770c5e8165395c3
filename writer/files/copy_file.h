// copy_file, copy_files: the same files at another place as cheaply as the file system can.
#pragma once

#include "layout/dataset/manifest.h"

#include <cstdint>
#include <string>

namespace penstock::writer {

/// Makes `name` in folder `at` (shown as `path`) the same as the regular file `from` of `bytes` bytes: hard link, else
/// reflink, else a copy; synced. Throws Corruption if `from` has another size, NotFound, IoError. Any thread.
void copy_file(const std::string& from, std::uint64_t bytes, int at, const std::string& name, const std::string& path);

/// The same for these files of the shard in folder `from`, and their side files.
void copy_files(const std::string& from, const layout::ShardFiles& files, int at, const std::string& path);

}  // namespace penstock::writer
