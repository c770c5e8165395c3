// The table of formats: which of them a path is, and that each opens what it recognises.
#include "layout/formats.h"

#include "core/base/error.h"
#include "tests/native/layout/drive.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace penstock::testing {
namespace {

std::string recognised(const std::string& path) {
  const layout::FileFormat* format = layout::recognise_format(local(path));
  return format == nullptr ? "" : format->name;
}

TEST(FormatsTest, APathIsOfTheFirstFormatThatRecognisesIt) {
  const TemporaryFolder folder;
  for (const char* name : {"pair.bin", "pair.idx", "lone.bin", "half.idx", "dotted.v1.bin", "dotted.v1.idx"}) {
    write_file(folder.path(name), {});
  }
  EXPECT_EQ(recognised(folder.path()), "penstock");
  for (const char* name : {"pair", "pair.bin", "pair.idx", "dotted.v1", "half.idx"}) {  // whose .bin is missing
    EXPECT_EQ(recognised(folder.path(name)), "megatron") << name;
  }
  for (const char* name : {"half", "nothing"}) EXPECT_EQ(recognised(folder.path(name)), "") << name;
  EXPECT_EQ(recognised(folder.path("lone.bin")), "raw");
  std::filesystem::create_symlink(folder.path("nothing"), folder.path("dangling"));
  EXPECT_EQ(recognised(folder.path("dangling")), "raw") << "opening it says that it leads nowhere";
}

TEST(FormatsTest, NamesAreUniqueAndOpenWhatTheyNameOrSayWhyNot) {
  std::vector<std::string> names;
  for (const layout::FileFormat& format : layout::file_formats()) names.emplace_back(format.name);
  EXPECT_EQ(names, (std::vector<std::string>{"mds", "litdata", "index.json", "penstock", "megatron", "datatrove",
                                             "olmo", "h5ad", "raw"}));
  const TemporaryFolder folder;
  write_file(folder.path("a.bin"), bytes_of(std::vector<std::uint16_t>{1, 2, 3}));
  const auto dataset =
      layout::open_as("raw", {local(folder.path("a.bin")), local(folder.path("a.bin"))}, {R"([["token","<u2"]])", ""});
  EXPECT_EQ(dataset->record_count(), 6U);
  expect_error([&] { layout::open_as("parquet", {local(folder.path("a.bin"))}, {}); }, ErrorKind::InvalidArgument,
               "parquet");
}

TEST(FormatsTest, AManifestThatIsNoFileIsRefused) {
  const TemporaryFolder folder;
  const std::string file = folder.path("dataset.json");
  const auto open = [&] { layout::open_dataset(local(folder.path())); };
  std::filesystem::create_directory(file);
  expect_error(open, ErrorKind::Corruption, "not a regular file");
  std::filesystem::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  expect_error(open, ErrorKind::Corruption, "not a regular file");
}

}  // namespace
}  // namespace penstock::testing
