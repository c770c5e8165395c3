#include "tests/fuzz/golden_dataset.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace penstock::fuzz {

std::string read_golden(const std::string& name) {
  std::ifstream file(std::string(PENSTOCK_GOLDEN_FOLDER) + "/" + name, std::ios::binary);
  require(file.good(), "a file of tests/golden is missing");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

GoldenDataset::GoldenDataset(const std::string& name) : folder_(name) {
  const std::filesystem::path root(PENSTOCK_GOLDEN_FOLDER);
  for (const auto& each : std::filesystem::recursive_directory_iterator(root / name)) {
    const std::string path = std::filesystem::relative(each.path(), root);
    if (!each.is_regular_file()) continue;
    put(*store_, path, written_[path] = read_golden(path));
  }
  dataset_ = layout::open_dataset({store_, name}, layout::Checks::None);
}

void GoldenDataset::fill(const std::vector<std::string>& names, Input& input) {
  for (const std::string& name : names) {
    const std::string path = folder_ + "/" + name;
    std::string bytes = written_.at(path);
    const std::size_t count = std::min(bytes.size(), input.size());
    bytes.replace(0, count, view_of(input.first(count)));
    put(*store_, path, bytes);
    input = input.subspan(count);
  }
}

}  // namespace penstock::fuzz
