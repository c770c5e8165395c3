// Bytes on disk are untrusted: whatever index, directory and ids say, a row is right or Corruption is thrown, and no
// read leaves its file (drive() checks each one).
#include "core/base/error.h"
#include "layout/windows/windows.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

namespace penstock::testing {
namespace {

using layout::SpanKind;

void poke(const std::string& path, std::uint64_t at, std::span<const std::byte> bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// Puts each of some evil values at each u64 of `file` and drives everything. Returns the refusals.
// Sources are made anew for each value: they keep what they read.
using Make = std::function<std::shared_ptr<const Source>()>;
std::uint64_t poke_everywhere(const File& file, const std::vector<Make>& sources) {
  std::ifstream stream(file.path(), std::ios::binary);
  const std::vector<char> original((std::istreambuf_iterator<char>(stream)), {});
  std::uint64_t refused = 0;
  for (std::uint64_t at = 0; at + 8 <= original.size(); at += 8) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{5}, std::uint64_t{4096},
                                      std::uint64_t{UINT64_MAX}, std::uint64_t{1} << 63, UINT64_MAX / 16}) {
      poke(file.path(), at, std::as_bytes(std::span(&value, 1)));
      for (const Make& make : sources) refused += drive_all(*make());
    }
    poke(file.path(), at, std::as_bytes(std::span(original)).subspan(at, 8));
  }
  for (const Make& make : sources) EXPECT_EQ(drive_all(*make()), 0U);
  return refused;
}

TEST(CorruptionTest, MutatedCompactIndexAndDirectoryNeverLeaveTheFiles) {
  const Model model(SpanKind::Compact, {{{{3, "aa"}, {0, ""}, {5, "b"}, {1, "ccc"}, {4095, "d"}, {2, ""}}, {}, {}}});
  const Make windows = [&] { return layout::make_windows(model.dataset(), 5, 1); };
  const Make long_windows = [&] { return layout::make_windows(model.dataset(), 4100, 0); };
  const auto keeping = [](const Make& make) -> Make {
    return [make] {
      auto source = make();
      source->info().keeps->grant(1 << 20);
      return source;
    };
  };
  const Make documents = [&] { return layout::make_documents(model.dataset()); };
  const layout::Shard& shard = model.dataset()->shards[0];
  EXPECT_GT(poke_everywhere(shard.index, {long_windows, keeping(long_windows), documents}), 0U);
  EXPECT_GT(poke_everywhere(shard.directory, {long_windows, keeping(long_windows)}), 0U);
  const std::uint64_t evil = UINT64_MAX;
  poke(shard.directory.path(), 0, std::as_bytes(std::span(&evil, 1)));
  EXPECT_GT(drive_all(*windows()), 0U);
}

// The same where the index is searched page by page: with too many entries to try a value at each.
TEST(CorruptionTest, AMutatedIndexThatIsSearchedInPagesNeverLeavesTheFiles) {
  ModelShard many;
  for (std::uint64_t i = 0; i < 9; ++i) {
    many.spans.insert(many.spans.end(), 5000, {0, "x"});
    many.spans.push_back({3, "entry"});
  }
  const Model model(SpanKind::Compact, {std::move(many)});
  const auto windows = layout::make_windows(model.dataset(), 4, 1);
  const File& index = model.dataset()->shards[0].index;
  std::mt19937_64 random(3);
  std::uint64_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    // Numbers of documents' entries and of those in the middles of ranges are looked at, others may never be.
    const std::uint64_t entry = round % 2 == 0 ? random() % 10 * 5001 % 45009 : random() % 45009;
    const std::uint64_t at = entry * 16 + random() % 2 * 8;
    const std::uint64_t values[] = {0, 5, 27, UINT64_MAX, std::uint64_t{1} << 63, random()};
    const std::uint64_t value = values[random() % 6];
    std::uint64_t original = 0;
    std::ifstream(index.path(), std::ios::binary)
        .seekg(static_cast<std::streamoff>(at))
        .read(reinterpret_cast<char*>(&original), 8);
    poke(index.path(), at, std::as_bytes(std::span(&value, 1)));
    refused += drive_all(*windows);
    poke(index.path(), at, std::as_bytes(std::span(&original, 1)));
  }
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(drive_all(*windows), 0U);
}

TEST(CorruptionTest, MutatedIdsAndOffsetsNeverLeaveTheFiles) {
  const Model model(SpanKind::Ids, {{{}, {0, 0, 1, 3, 3, 2, 1, 4}, {"aa", "", "b", "cccc", "d"}}});
  const auto windows = layout::make_windows(model.dataset(), 3, 0);
  const layout::Shard& shard = model.dataset()->shards[0];
  EXPECT_GT(poke_everywhere(shard.index, {[&] { return windows; }}), 0U);
  EXPECT_GT(poke_everywhere(shard.stream, {[&] { return windows; }}), 0U);
  const Model opaque(SpanKind::Opaque, {{{}, {}, {"aa", "", "b", "cccc"}}});
  const auto documents = layout::make_documents(opaque.dataset());
  EXPECT_GT(poke_everywhere(opaque.dataset()->shards[0].index, {[&] { return documents; }}), 0U);
}

TEST(CorruptionTest, IndexFilesOfTheWrongSizeAreRefusedBeforeAnythingIsReadAndMessagesNameTheFile) {
  const Model model(SpanKind::Compact, {{{{3, "aa"}, {3, "b"}}, {}, {}}});
  const Model ids(SpanKind::Ids, {{{}, {0, 0, 0}, {"aa"}}});
  for (const Model* each : {&model, &ids}) {
    layout::Dataset broken = *each->dataset();
    broken.shards[0].index.bytes -= 1;
    EXPECT_THROW(layout::make_windows(std::make_shared<layout::Dataset>(broken), 1, 0), Error);
  }
  const std::uint64_t evil = 77;
  poke(model.dataset()->shards[0].index.path(), 16, std::as_bytes(std::span(&evil, 1)));
  const auto windows = layout::make_windows(model.dataset(), 2, 0);
  expect_error([&] { driven(*windows, 0); }, ErrorKind::Corruption, "00000/metadata.index");
}

}  // namespace
}  // namespace penstock::testing
