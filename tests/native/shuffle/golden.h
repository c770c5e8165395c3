// The frozen values of tests/golden/permutation.json. They come from tests/python/permutation_reference.py.
#pragma once

#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>

namespace penstock::shuffle {

inline nlohmann::json golden() {
  std::ifstream file(PENSTOCK_GOLDEN_FOLDER "/permutation.json");
  if (!file) throw std::runtime_error("cannot open " PENSTOCK_GOLDEN_FOLDER "/permutation.json");
  return nlohmann::json::parse(file);
}

}  // namespace penstock::shuffle
