// Each target over its corpus: corpus/TARGET.gz, which libFuzzer made (scripts/fuzz --keep), and found/TARGET, inputs
// that failed once.
#include "tests/fuzz/targets.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace penstock::fuzz {
namespace {

const std::filesystem::path kFolder = PENSTOCK_FUZZ_FOLDER;

// Inputs end to end, each behind its size, u32.
std::vector<std::string> packed_inputs(const std::string& path) {
  std::vector<std::string> inputs;
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return inputs;
  std::uint32_t bytes = 0;
  while (gzread(file, &bytes, sizeof bytes) == sizeof bytes) {
    std::string& input = inputs.emplace_back(bytes, '\0');
    EXPECT_EQ(gzread(file, input.data(), bytes), static_cast<int>(bytes)) << path;
  }
  gzclose(file);
  return inputs;
}

std::vector<std::string> found_inputs(const std::filesystem::path& folder) {
  std::vector<std::string> inputs;
  if (!std::filesystem::exists(folder)) return inputs;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(each.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

class CorpusTest : public ::testing::TestWithParam<Target> {};

TEST_P(CorpusTest, EveryInputOfTheCorpusIsReadOrRefused) {
  const std::string name = GetParam().name;
  std::vector<std::string> inputs = packed_inputs(kFolder / "corpus" / (name + ".gz"));
  EXPECT_FALSE(inputs.empty()) << "no corpus: scripts/fuzz --only " << name << " --keep";
  for (std::string& each : found_inputs(kFolder / "found" / name)) inputs.push_back(std::move(each));
  std::size_t accepted = 0;
  const std::uint64_t refused = refusals();
  for (const std::string& each : inputs) accepted += GetParam().run(std::as_bytes(std::span(each))) ? 1 : 0;
  EXPECT_GT(accepted, 0U) << "of " << inputs.size();
  EXPECT_TRUE(accepted < inputs.size() || refusals() > refused) << "nothing was refused";
}

INSTANTIATE_TEST_SUITE_P(Fuzz, CorpusTest, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace penstock::fuzz
