// naming: the place of an error that has none.
#pragma once

#include "core/base/error.h"

#include <string>

namespace penstock {

/// open(), which opens a channel to read `path`. An error of the system that names no file names that one: what a
/// channel needs, such as descriptors, belongs to none.
template <typename Open>
auto naming(const std::string& path, const Open& open) -> decltype(open()) {
  try {
    return open();
  } catch (const Error& error) {
    if (error.error_number() == 0 || !error.path().empty()) throw;
    throw Error(error.kind(), fmt::format("{}: {}", path, error.what()), error.error_number(), path);
  }
}

}  // namespace penstock
