// Local files while a dataset is opened, beyond what every store promises: kinds of files, links, listings.
#include "core/io/local/local_files.h"

#include "core/io/local/local_store.h"
#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"

#include <sys/stat.h>

#include <array>
#include <fstream>

namespace penstock::testing {
namespace {

TEST(LocalFiles, OnlyRegularFilesHaveSizesAndBytesAndOnlyFoldersNames) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a") << "0123456789";
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink("a", folder / "link");
  std::filesystem::create_symlink("sub", folder / "sublink");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(local_size(folder / "a", Links::BelowFolder), 10U);
  EXPECT_EQ(local_size(folder / "link", Links::Follow), 10U);
  EXPECT_EQ(local_size(folder / "link", Links::BelowFolder), 10U);
  const auto size = [&](const char* name) { return [=, &folder] { local_size(folder / name, Links::Follow); }; };
  EXPECT_EQ(message_of(size("sub"), ErrorKind::InvalidArgument), folder / "sub: not a regular file but a folder");
  EXPECT_EQ(message_of(size("pipe"), ErrorKind::InvalidArgument),
            folder / "pipe: not a regular file but a pipe or device");
  message_of(size("a/none"), ErrorKind::IoError);
  std::array<std::byte, 4> bytes{};
  EXPECT_EQ(message_of([&] { read_local(folder / "a", 7, bytes); }, ErrorKind::Corruption),
            folder / "a: ends at byte 10, 1 more are wanted");
  message_of([&] { read_local(folder / "pipe", 0, bytes); }, ErrorKind::IoError);
  EXPECT_EQ(list_local(folder.path()), (std::vector<std::string>{"a", "link", "pipe", "sub/", "sublink/"}));
  EXPECT_EQ(list_local(folder / "sub"), std::vector<std::string>());
  EXPECT_EQ(message_of([&] { list_local(folder / "none"); }, ErrorKind::NotFound), folder / "none: no such folder");
  message_of([&] { list_local(folder / "a"); }, ErrorKind::IoError);
}

TEST(LocalFiles, TheStoreSaysHowItIsBestRead) {
  const LocalStore store;
  EXPECT_EQ(store.reading_by(Reader::Direct)->block_bytes(), 4096U);
  EXPECT_EQ(store.reading_by(Reader::Auto)->block_bytes(), 1U);
  EXPECT_EQ(store.reading_by(Reader::Pread)->reads_in_flight(), 1U);
  EXPECT_EQ(store.reading_by(Reader::Pread)->name(), "pread");
  EXPECT_EQ(store.reading_once(1)->name(), "pread");
  EXPECT_GT(store.reading_by(Reader::Pread)->near_bytes(), store.reading_by(Reader::Mmap)->near_bytes());
  const auto automatic = store.reading_by(Reader::Auto);
  EXPECT_EQ(automatic->reads_in_flight() > 1, automatic->name() == "uring");
}

}  // namespace
}  // namespace penstock::testing
