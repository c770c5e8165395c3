// Any bytes as metadata.directory. No check value is compared.
#include "tests/fuzz/golden_dataset.h"

#include <array>

namespace penstock::fuzz {

bool directory(Input input) {
  static std::array datasets{GoldenDataset("dataset-v1/compact"), GoldenDataset("dataset-v1/boundaries")};
  GoldenDataset& dataset = datasets[take_choice(input, datasets.size())];
  const std::size_t first = take_choice(input, 256);
  dataset.fill({"00001/metadata.directory", "00000/metadata.directory"}, input);
  return read_views(dataset.dataset(), first, 100);
}

}  // namespace penstock::fuzz
