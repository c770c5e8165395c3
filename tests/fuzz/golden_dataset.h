// GoldenDataset: a dataset of tests/golden in memory, without checks, whose files are right until one is replaced.
#pragma once

#include "layout/dataset.h"
#include "tests/fuzz/read_views.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::fuzz {

class GoldenDataset {
 public:
  /// "dataset-v1/compact"
  explicit GoldenDataset(const std::string& name);

  [[nodiscard]] const layout::DatasetPtr& dataset() const noexcept { return dataset_; }
  /// The files "00000/metadata.index", … get the input's bytes end to end, each as many as it has; where the input ends
  /// they stay as they were written. Takes those bytes off the input.
  void fill(const std::vector<std::string>& names, Input& input);

 private:
  const std::string folder_;
  std::map<std::string, std::string> written_;  // by path
  MemoryStorePtr store_ = std::make_shared<testing::MemoryStore>();
  layout::DatasetPtr dataset_;
};

/// The file in tests/golden.
std::string read_golden(const std::string& name);

}  // namespace penstock::fuzz
