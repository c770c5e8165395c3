// What tens of thousands of shards cost when they are opened, in allocations and bytes.
#include "layout/dataset.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"
#include "tests/native/layout/drive.h"
#include "tests/native/layout/failing_allocations.h"

#include <gtest/gtest.h>

#include <fstream>

namespace penstock::testing {
namespace {

struct Opened {
  std::size_t manifest_bytes;
  Allocated cost;
};

// The manifest alone is there.
Opened open_and_view(std::uint64_t shards) {
  layout::Manifest made;
  made.format = {"stream", "compact", Schema::parse(R"([["token","<u4"]])"), R"({"name":"json"})"};
  for (std::uint64_t i = 0; i < shards; ++i) {
    made.shards.push_back({layout::shard_name(i), 250'000'000 + i, 2, 2, 7, {DigestBytes{}}, DigestBytes{}});
  }
  const TemporaryFolder folder;
  const std::string text = layout::write_manifest(made);
  std::ofstream(folder.path("dataset.json"), std::ios::binary) << text;
  const Allocated before = allocated();
  const layout::DatasetPtr dataset = layout::open_dataset(local(folder.path()));
  const auto windows = layout::make_windows(dataset, 4096, 1);
  const auto documents = layout::make_documents(dataset);
  windows->info().keeps->grant(1U << 30);
  EXPECT_EQ(documents->info().size, 2 * shards);
  EXPECT_EQ(dataset->record_count(), shards * 250'000'000 + shards * (shards - 1) / 2);
  EXPECT_EQ(dataset->shards[1].stream.path(), folder.path("00001/stream.bin"));
  const Allocated after = allocated();
  return {text.size(), {after.blocks - before.blocks, after.bytes - before.bytes}};
}

TEST(ManyShards, OpeningAllocatesAsOftenAsForAFewAndAFewBytesForEachOfTheManifest) {
  const Opened few = open_and_view(4);
  const Opened many = open_and_view(40'000);
  EXPECT_LT(many.cost.blocks, few.cost.blocks + 200);  // tables that grow; nothing for each shard
  // Text, simdjson's index (of which a quarter is touched) and its room for strings; then two tables of shards.
  EXPECT_LT(many.cost.bytes, 8 * many.manifest_bytes + 40'000 * 800);
}

}  // namespace
}  // namespace penstock::testing
