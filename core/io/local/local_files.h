// Local files as they are looked at while a dataset is opened: nothing stays open. Any thread.
#pragma once

#include "core/io/byte_store.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace penstock {

/// See ByteStore::size(), read_small() and list().
std::uint64_t local_size(const std::string& path, Links links);
void read_local(const std::string& path, std::uint64_t offset, std::span<std::byte> out);
std::vector<std::string> list_local(const std::string& path);

}  // namespace penstock
