// combine and append: datasets become one, of the same shards.
#include "layout/dataset.h"
#include "tests/native/layout/drive.h"
#include "tests/native/writer/small_datasets.h"
#include "writer/derived/append.h"
#include "writer/derived/combine.h"
#include "writer/verify/verify.h"

namespace penstock::writer {
namespace {

namespace fs = std::filesystem;

class JoiningTest : public SmallDatasets {
 protected:
  static std::string opened_as_one(const std::vector<std::string>& paths) {
    std::vector<layout::DatasetPtr> datasets;
    for (const std::string& path : paths) datasets.push_back(layout::open_dataset(testing::local(path)));
    return layout::concatenate(datasets)->fingerprint;
  }
  static void expect_whole(const std::string& path, const std::string& fingerprint) {
    const VerifyReport report = verify(path, {});
    EXPECT_TRUE(report.ok()) << report.problems[0];
    EXPECT_EQ(report.notices, std::vector<std::string>());
    EXPECT_EQ(report.fingerprint, fingerprint);
  }
  static WriterOptions saying(const std::string& tokenizer_json) {
    WriterOptions made = options();
    made.tokenizer_json = tokenizer_json;
    return made;
  }
};

TEST_F(JoiningTest, ACombinedDatasetIsItsInputsOpenedAsOne) {
  for (const char* kind : {"compact", "columns", "ids", "tokens", "opaque"}) {
    const bool has_columns = kind == std::string("columns");
    const auto made = [&] { return has_columns ? with_columns() : options(kind); };
    const std::string name = kind;
    const std::vector<std::string> inputs{write(name + "a", made()), write(name + "b", made(), 1)};
    const std::string wanted = opened_as_one(inputs);
    EXPECT_EQ(combine(inputs, root_ / name), wanted) << kind;
    expect_whole(root_ / name, wanted);
    const std::string file = kind == std::string("opaque") ? "/metadata.bin" : "/stream.bin";
    EXPECT_EQ(inode(root_ / name + "/00000" + file), inode(inputs[0] + "/00000" + file)) << "linked, not copied";
    EXPECT_EQ(append(inputs[0], {inputs[1]}, false, {}), wanted) << kind;
    expect_whole(inputs[0], wanted);
  }
}

TEST_F(JoiningTest, CombineGoesOnWithWhatIsFinishedAndRightAndReplacesTheRest) {
  const std::vector<std::string> inputs{write("a"), write("b", options(), 1)};
  const std::string wanted = combine(inputs, root_ / "whole");
  const std::size_t shards = manifest(root_ / "whole").shards.size();
  const std::string out = root_ / "out";
  for (std::size_t finished = 0; finished <= shards; ++finished) {
    fs::create_directory(out);
    for (std::size_t i = 0; i < finished; ++i) {
      fs::copy(root_ / "whole/" + layout::shard_name(i), out + "/" + layout::shard_name(i),
               fs::copy_options::recursive);
    }
    const std::string first = out + "/00000/stream.bin";
    const std::string second = out + "/00001/stream.bin";
    if (finished > 1) put(second, "cut");
    const ino_t kept = finished > 0 ? inode(first) : 0;
    if (finished > 0) testing::message_of([&] { combine(inputs, out); }, ErrorKind::InvalidArgument);
    EXPECT_EQ(combine(inputs, out, true), wanted);
    expect_whole(out, wanted);
    if (finished > 0) {
      EXPECT_EQ(inode(first), kept) << "it was finished and right";
    }
    fs::remove(out + "/dataset.json");
    EXPECT_EQ(combine({inputs[1]}, out, true), manifest(inputs[1]).fingerprint) << "of another run";
    expect_whole(out, manifest(inputs[1]).fingerprint);
    testing::message_of([&] { combine(inputs, out, true); }, ErrorKind::InvalidArgument);
    EXPECT_EQ(combine(inputs, out, false, true), wanted) << "over a published one";
    expect_whole(out, wanted);
    fs::remove_all(out);
  }
}

TEST_F(JoiningTest, OneThatIsStoppedChangesNothing) {
  const std::vector<std::string> inputs{write("a"), write("b", options(), 1)};
  expect_stops_leave(inputs[0], [&](const Tell& tell) { append(inputs[0], {inputs[1]}, false, tell); });
  struct Stop {};
  EXPECT_THROW(combine(inputs, root_ / "out", false, false,
                       [](std::uint64_t done, std::uint64_t total) {
                         EXPECT_EQ(done, total);
                         throw Stop();
                       }),
               Stop);
  EXPECT_FALSE(fs::exists(root_ / "out"));
}

TEST_F(JoiningTest, WhatDoesNotGoTogetherIsRefusedAndNothingIsWritten) {
  WriterOptions field = options();
  field.format.schema = Schema::parse(R"([["token","<i2"]])");
  WriterOptions codec = options();
  codec.format.codec_json = R"({"name":"json"})";
  WriterOptions column = with_columns();
  column.features.reset();
  WriterOptions features = options();
  features.features = with_columns().features;
  const struct {
    WriterOptions options;
    const char* words;
  } kRefusals[] = {
      {options("ids"), "convert one of them first"},
      {field, "token"},
      {codec, "codec"},
      {column, "column"},
      {features, "has features, the other has none"},
      {options("opaque"), "mode"},
      {saying(R"({"name":"yours"})"), "has tokenizer"},
  };
  const std::string path = write("a", saying(R"({"name":"mine"})"));
  const auto before = contents(path);
  for (const auto& [options, words] : kRefusals) {
    fs::remove_all(root_ / "other");
    const std::string other = write("other", options);
    testing::expect_error([&] { append(path, {other}, false, {}); }, ErrorKind::InvalidArgument, words);
    testing::expect_error([&] { append(path, {other}, false, {}); }, ErrorKind::InvalidArgument, "cannot append");
    testing::expect_error([&] { combine({path, other}, root_ / "out"); }, ErrorKind::InvalidArgument, words);
  }
  testing::message_of([&] { append(root_ / "nothing", {path}, false, {}); }, ErrorKind::NotFound);
  testing::message_of([&] { append(path, {root_ / "nothing"}, false, {}); }, ErrorKind::NotFound);
  testing::message_of([&] { combine({root_ / "nothing"}, root_ / "out"); }, ErrorKind::NotFound);
  testing::message_of([&] { append(path, {}, false, {}); }, ErrorKind::InvalidArgument);
  testing::message_of([&] { combine({}, root_ / "out"); }, ErrorKind::InvalidArgument);
  EXPECT_TRUE(contents(path) == before);
  EXPECT_FALSE(fs::exists(root_ / "out") || fs::exists(root_ / "nothing"));
}

TEST_F(JoiningTest, ATokenizerIsSaidWhereAllSayItAndStaysSaid) {
  const std::string mine = R"({"name":"mine"})";
  const std::string says = write("a", saying(mine));
  const std::string same = write("b", saying(mine), 1);
  const std::string silent = write("c", options(), 2);
  combine({says, same}, root_ / "both");
  EXPECT_EQ(manifest(root_ / "both").tokenizer_json, mine);
  combine({says, silent}, root_ / "one");
  EXPECT_EQ(manifest(root_ / "one").tokenizer_json, "null");
  const std::vector<std::string> both{same, silent};
  testing::expect_error([&] { append(says, both, false, {}); }, ErrorKind::InvalidArgument,
                        "c does not say its own: write it with tokenizer=");
  append(silent, {says}, false, {});
  EXPECT_EQ(manifest(silent).tokenizer_json, "null");
}

TEST_F(JoiningTest, FeaturesThatAreNotWhatTheManifestSaysAreCorrupt) {
  const std::string path = write("a", with_columns());
  fs::remove_all(path + "/features");
  fs::copy(write("odd", options("opaque")), path + "/features", fs::copy_options::recursive);
  testing::expect_error([&] { combine({path}, root_ / "out"); }, ErrorKind::Corruption,
                        "its features have fingerprint");
  EXPECT_FALSE(fs::exists(root_ / "out"));
}

}  // namespace
}  // namespace penstock::writer
