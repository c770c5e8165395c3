// Any bytes as metadata.index, of compact datasets, of boundaries and of the ids layout, whose records' ids are any
// bytes too; and as an index of opaque documents. No check value is compared.
#include "layout/dataset/manifest.h"
#include "tests/fuzz/golden_dataset.h"

#include <array>
#include <utility>

namespace penstock::fuzz {
namespace {

constexpr std::uint64_t kOpaqueEntries = 6;
constexpr std::uint64_t kOpaqueBytes = 60;

// A manifest alone: the tests' golden datasets have no opaque one.
std::pair<MemoryStorePtr, layout::DatasetPtr> open_opaque() {
  layout::Manifest manifest;
  manifest.format.mode = layout::kModeOpaque;
  manifest.format.codec_json = R"({"name":"raw"})";
  layout::ShardInfo& shard = manifest.shards.emplace_back();
  shard.name = "00000";
  shard.spans = shard.entries = kOpaqueEntries;
  shard.data_bytes = kOpaqueBytes;
  shard.span_digest.emplace();
  auto store = std::make_shared<testing::MemoryStore>();
  put(*store, "opaque/dataset.json", layout::write_manifest(manifest));
  put(*store, "opaque/00000/metadata.bin", std::string(kOpaqueBytes, 'x'));
  return {store, layout::open_dataset({store, "opaque"}, layout::Checks::None)};
}

bool read_opaque(Input input, std::uint64_t first) {
  static const auto opaque = open_opaque();
  std::string bytes((kOpaqueEntries + 1) * layout::kOffsetIndexEntryBytes, '\0');
  bytes.replace(0, std::min(bytes.size(), input.size()), view_of(input.first(std::min(bytes.size(), input.size()))));
  put(*opaque.first, "opaque/00000/metadata.index", bytes);
  return read_views(opaque.second, first, 1);
}

}  // namespace

bool index(Input input) {
  static std::array datasets{GoldenDataset("dataset-v1/compact"), GoldenDataset("dataset-v1/boundaries"),
                             GoldenDataset("dataset-v1/ids")};
  const std::size_t which = take_choice(input, datasets.size() + 1);
  const std::size_t first = take_choice(input, 256);
  if (which == datasets.size()) return read_opaque(input, first);
  datasets[which].fill({"00000/metadata.index", "00001/metadata.index"}, input);
  if (which == 2) datasets[which].fill({"00000/stream.bin"}, input);
  return read_views(datasets[which].dataset(), first, 100);
}

}  // namespace penstock::fuzz
