// The index.json of a folder of shards (MDS) or chunks (litdata): the list of its files, since not every store lists.
//
// Pure but for what it reads; any thread. What it reads is untrusted.
#pragma once

#include "core/io/open_store.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace penstock::layout {

inline constexpr const char* kForeignIndexName = "index.json";

/// The folder of a dataset that was given as it, or as its index.json.
Location foreign_folder(const Location& location);
std::string foreign_folder_path(const std::string& path);

/// Its index.json. Throws NotFound, IoError; Corruption where it is no JSON object.
nlohmann::json read_foreign_index(const Location& folder);

/// The path of a file that an index names, which may lie in folders of the folder. Throws Corruption for a name that
/// leads out of it.
std::string foreign_file_path(const Location& folder, const std::string& name);

/// "mds" or "litdata", as its index.json says; empty: neither, or there is none that can be read.
std::string kind_of_foreign_folder(const Location& location);

/// The files that an index names, as far as it can be understood.
std::vector<Location> files_of_foreign_folder(const Location& location);

/// "tokens, text (str)": at most `most` of them.
std::string listed(const std::vector<std::string>& names, std::size_t most = 20);

}  // namespace penstock::layout
