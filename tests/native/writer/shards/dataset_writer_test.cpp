#include "writer/shards/dataset_writer.h"

#include "tests/native/writer/small_datasets.h"
#include "writer/derived/convert.h"
#include "writer/verify/verify.h"

#include <algorithm>

namespace penstock::writer {
namespace {

class DatasetWriterTest : public SmallDatasets {
 protected:
  static WriterOptions options(const std::string& layout = "compact") {
    WriterOptions made;
    made.format.mode = "stream";
    made.format.layout = layout;
    made.format.schema = Schema::parse(R"([["a","<u2"],["b",[["x","|u1"],["y","<u4"]],[2]]])");
    made.format.codec_json = R"({"name":"raw"})";
    return made;
  }

  // Documents of 0 to 4,999 records of 12 bytes: many directory entries, spans of no record among them.
  void write(const std::string& name, WriterOptions made, bool empty = true) {
    DatasetWriter writer(root_ / name, std::move(made));
    for (std::size_t i = 0; i < 12; ++i) {
      const std::size_t records = i % 4 == 0 ? (empty ? 0 : 1) : i * 997 % 5000;
      std::string data(records * 12, '\0');
      for (std::size_t k = 0; k < data.size(); ++k) data[k] = static_cast<char>(k * 31 + i);
      writer.append(bytes_of(data), bytes_of(std::string(i * 3, 'x')));
    }
    writer.commit();
  }

  static std::vector<std::uint64_t> numbers(const std::string& path) {
    const std::string text = file(path);
    std::vector<std::uint64_t> out(text.size() / 8);
    std::copy(text.begin(), text.end(), reinterpret_cast<char*>(out.data()));
    return out;
  }
};

TEST_F(DatasetWriterTest, TheDirectoryNamesTheSpanOfEveryMultipleOf4096) {
  write("d", options());
  const auto index = numbers(root_ / "d/00000/metadata.index");
  const auto directory = numbers(root_ / "d/00000/metadata.directory");
  const std::uint64_t records = index[index.size() - 2];
  ASSERT_EQ(directory.size(), layout::directory_entries(records));
  ASSERT_GT(directory.size(), 5U);
  for (std::uint64_t k = 0; k + 1 < directory.size(); ++k) {
    EXPECT_LE(index[directory[k] * 2], k * 4096);
    EXPECT_GT(index[directory[k] * 2 + 2], k * 4096);
  }
  EXPECT_EQ(directory.back(), index.size() / 2 - 1);
}

TEST_F(DatasetWriterTest, BothLayoutsHaveTheSameFingerprintAndVerifyEvenIfNothingWasAppended) {
  for (const char* layout : {"compact", "ids"}) {
    write(layout, options(layout), false);
    DatasetWriter(root_ / ("empty" + std::string(layout)), options(layout)).commit();
    for (const std::string& name : {std::string(layout), "empty" + std::string(layout)}) {
      EXPECT_EQ(verify(root_ / name, {}).problems, std::vector<std::string>()) << name;
      EXPECT_EQ(manifest(root_ / name).shards.size(), 1U) << name;
    }
  }
  const std::string fingerprint = manifest(root_ / "compact").fingerprint;
  EXPECT_EQ(manifest(root_ / "ids").fingerprint, fingerprint);
  EXPECT_EQ(convert(root_ / "ids", root_ / "again", "compact"), fingerprint);
}

TEST_F(DatasetWriterTest, OpaqueDocumentsOfAnyLength) {
  WriterOptions made;
  made.format = {"opaque", "", Schema(), R"({"name":"raw"})"};
  DatasetWriter writer(root_ / "d", made);
  for (const char* text : {"", "abc", "", "d"}) writer.append({}, bytes_of(text));
  EXPECT_THROW(writer.append(bytes_of("x"), bytes_of("x")), Error);
  writer.commit();
  EXPECT_EQ(numbers(root_ / "d/00000/metadata.index"), (std::vector<std::uint64_t>{0, 0, 3, 3, 4}));
  EXPECT_TRUE(verify(root_ / "d", {}).ok());
}

TEST_F(DatasetWriterTest, AWriterThatIsDestroyedPublishesNothing) {
  { DatasetWriter(root_ / "d", options()).append(bytes_of(std::string(12, 'a')), bytes_of("x")); }
  EXPECT_FALSE(std::filesystem::exists(root_ / "d"));
}

}  // namespace
}  // namespace penstock::writer
