// verify finds each kind of damage and names the file that has it.
#include "writer/verify/verify.h"

#include "core/base/crc32c.h"
#include "tests/native/writer/small_datasets.h"
#include "writer/folder/commit.h"

#include <algorithm>

namespace penstock::writer {
namespace {

namespace fs = std::filesystem;

class VerifyTest : public SmallDatasets, public ::testing::WithParamInterface<const char*> {
 protected:
  static std::string all(const VerifyReport& report) {
    std::string text;
    for (const std::string& each : report.problems) text += each + "\n";
    return text;
  }
  /// A few bytes of a file become others, and its check values those of what it has now.
  static void lie(const std::string& path, std::size_t at, const std::string& bytes) {
    std::string text = file(path);
    ASSERT_LE(at + bytes.size(), text.size());
    std::copy(bytes.begin(), bytes.end(), text.begin() + static_cast<std::ptrdiff_t>(at));
    put(path, text);
    std::string crcs;
    for (std::size_t block = 0; block < text.size(); block += layout::kCrcBlockBytes) {
      const std::uint32_t crc = crc32c(
          bytes_of(text).subspan(block).first(std::min<std::size_t>(layout::kCrcBlockBytes, text.size() - block)));
      crcs.append(reinterpret_cast<const char*>(&crc), sizeof crc);
    }
    put(path + layout::kCrcSuffix, crcs);
  }
  static std::string u64(std::uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }
};

INSTANTIATE_TEST_SUITE_P(, VerifyTest, ::testing::Values("compact", "columns", "ids", "tokens", "opaque"),
                         [](const auto& info) { return info.param; });

TEST_P(VerifyTest, AnyFileThatIsDamagedCutLongerOrGoneIsNamed) {
  const std::string path = write("d", GetParam() == std::string("columns") ? with_columns() : options(GetParam()));
  const VerifyReport whole = verify(path, {});
  EXPECT_EQ(all(whole), "");
  EXPECT_EQ(whole.notices, std::vector<std::string>());
  EXPECT_EQ(whole.shards, manifest(path).shards.size());
  EXPECT_GT(whole.shards, 1U);
  EXPECT_EQ(whole.fingerprint, manifest(path).fingerprint);
  EXPECT_EQ(whole.entries, GetParam() == std::string("tokens") ? 0 : kDocuments);
  LocalStore far;
  for (const auto& [name, before] : contents(path)) {
    // Of check values that are no longer those of their file, this one is named.
    const std::string named = name.ends_with(".crc")            ? name.substr(0, name.size() - 4)
                              : name == "features/dataset.json" ? "features"
                                                                : name;
    const auto expect_named = [&](const std::string& damage) {
      SCOPED_TRACE(name + damage);
      const VerifyReport report = verify(path, {});
      EXPECT_NE(all(report).find(path + "/" + named), std::string::npos) << all(report);
      const std::string other = path + (name.starts_with("00000") ? "/00001/" : "/00000/");
      EXPECT_EQ(all(report).find(other), std::string::npos) << all(report);
      const VerifyReport through = verify(path, {}, &far);
      EXPECT_EQ(through.problems.size(), report.problems.size()) << "read through a store: " << all(through);
      EXPECT_NE(all(through).find(path + "/" + named), std::string::npos) << all(through);
    };
    std::string damaged = before;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 4);
    put(path + "/" + name, damaged);
    expect_named(" damaged");
    put(path + "/" + name, before.substr(0, before.size() - 1));
    expect_named(" cut");
    put(path + "/" + name, before + "x");
    expect_named(" longer");
    fs::remove(path + "/" + name);
    if (name == layout::kManifestName) {
      testing::message_of([&] { verify(path, {}); }, ErrorKind::NotFound);
    } else {
      expect_named(" gone");
    }
    put(path + "/" + name, before);
  }
  EXPECT_TRUE(verify(path, {}).ok());
}

// Files whose check values are right, so that only what they say can be wrong.
TEST_F(VerifyTest, WhatAFileSaysIsComparedWithTheManifest) {
  const struct {
    const char* kind;
    const char* name;
    std::size_t at;
    std::string bytes;
    const char* words;
  } kLies[] = {
      {"compact", "stream.bin", 20, "?", "digest of field token"},
      {"compact", "metadata.bin", 0, "?", "digest of the spans"},
      {"compact", "metadata.index", 0, u64(1), "does not begin with (0, 0)"},
      {"compact", "metadata.index", 32, u64(1), "at byte 32: entry (1, "},
      {"compact", "metadata.index", 16, u64(10), "digest of the spans"},
      {"compact", "metadata.directory", 0, u64(1), "record 0 is said to lie in span 1, it is in 0"},
      {"compact", "metadata.directory", 8, u64(1), "ends with 1, expected"},
      {"columns", "columns.bin", 1, "?", "digest of column score"},
      {"columns", "columns.bin", 64, "\x03", "column plate has the code 3, there are 3 categories"},
      {"ids", "stream.bin", 2, u64(200).substr(0, 4), "metadata_id of record 0 is beyond the"},
      {"ids", "stream.bin", 2, u64(1).substr(0, 4), "digest of its spans"},
      {"ids", "metadata.index", 0, u64(1), "not in order from 0"},
      {"tokens", "stream.bin", 20, "?", "digest of field token"},
      {"opaque", "metadata.bin", 3, "?", "digest of the entries"},
      {"opaque", "metadata.index", 8, u64(UINT64_MAX), "not in order from 0"},
  };
  for (const auto& each : kLies) {
    fs::remove_all(root_ / "d");
    const std::string path = write("d", each.kind == std::string("columns") ? with_columns() : options(each.kind));
    lie(path + "/00000/" + each.name, each.at, each.bytes);
    const VerifyReport report = verify(path, {});
    EXPECT_NE(all(report).find("/00000/"), std::string::npos) << each.kind << " " << each.name;
    EXPECT_NE(all(report).find(each.words), std::string::npos) << each.kind << " " << each.name << ": " << all(report);
    EXPECT_EQ(all(report).find("CRC32C"), std::string::npos) << all(report);
  }
}

TEST_F(VerifyTest, ShardsAndFeaturesOfAnotherDatasetAreSeen) {
  const std::string path = write("d", with_columns());
  const std::string other = write("other", with_columns(), 1);
  fs::copy_file(other + "/00001/shard.json", path + "/00001/shard.json", fs::copy_options::overwrite_existing);
  EXPECT_NE(all(verify(path, {})).find("00001/shard.json: at byte 0: says something else than dataset.json"),
            std::string::npos);
  WriterOptions odd = options("opaque");
  fs::remove_all(path + "/features");
  fs::copy(write("odd", odd), path + "/features", fs::copy_options::recursive);
  EXPECT_NE(all(verify(path, {})).find(path + "/features: fingerprint "), std::string::npos);
}

TEST_F(VerifyTest, NeighbouringBadBlocksAreOneProblemAndNothingHidesAnother) {
  WriterOptions large = options("tokens");
  large.shard_bytes = 1 << 20;
  DatasetWriter writer(root_ / "d", large);
  writer.append(bytes_of(std::string(40'000, 'x')), std::nullopt);
  writer.commit();
  const std::string path = root_ / "d/00000/stream.bin";
  std::string text = file(path);
  for (const std::size_t at : {5'000, 9'000, 39'999}) text[at] = '?';
  put(path, text);
  const std::vector<std::string> problems = verify(root_ / "d", {}).problems;
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0], path + ": at byte 4,096: bytes 4096 to 12288 do not have their CRC32C");
  EXPECT_EQ(problems[1], path + ": at byte 36,864: bytes 36864 to 40000 do not have their CRC32C");
  EXPECT_NE(problems[2].find("digest of field token"), std::string::npos);
}

TEST_F(VerifyTest, ProgressCountsAllBytesAndMayStop) {
  const std::string path = write("d");
  std::uint64_t last = 0;
  const VerifyReport report = verify(path, [&](std::uint64_t done, std::uint64_t) { last = done; });
  EXPECT_EQ(last, report.bytes);
  EXPECT_THROW(verify(path, [](std::uint64_t, std::uint64_t) { throw std::runtime_error("stop"); }),
               std::runtime_error);
}

TEST_F(VerifyTest, FoldersThatTheManifestDoesNotNameAreNoProblem) {
  WriterOptions one = options();
  one.shard_bytes = 1 << 20;
  const std::string path = write("d", one);
  const auto expect_notices = [&](const std::string& first, const std::string& second) {
    const VerifyReport report = verify(path, {});
    EXPECT_TRUE(report.ok());
    ASSERT_EQ(report.notices.size(), 2U);
    EXPECT_NE(report.notices[0].find(path + ": dataset.json does not name " + first), std::string::npos)
        << report.notices[0];
    EXPECT_NE(report.notices[1].find("does not name " + second), std::string::npos) << report.notices[1];
  };
  fs::create_directory(path + "/.partial-00000-1-0");
  one.shard = 0;
  one.overwrite = true;
  write("d", one);
  expect_notices("00000.1: finished shards that are to replace", ".partial-00000-1-0: unfinished");
  fs::remove(path + "/.partial-00000-1-0");
  // As after a kill between the manifest's rename and the removal of what it replaced.
  fs::copy(path + "/00000", path + "/kept", fs::copy_options::recursive);
  commit(path, "null", 1, true);
  for (int i = 0; i < 6; ++i) fs::copy(path + "/kept", path + "/" + layout::shard_name(i), fs::copy_options::recursive);
  expect_notices("00000, 00001, 00002, 00003 and 2 more: shards that are no part of this dataset",
                 "kept: folders that penstock did not make");
}

}  // namespace
}  // namespace penstock::writer
