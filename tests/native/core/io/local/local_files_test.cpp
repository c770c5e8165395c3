// Local files while a dataset is opened: sizes, small reads, listings.
#include "core/io/local/local_files.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace penstock {
namespace {

namespace fs = std::filesystem;

class LocalFilesTest : public ::testing::Test {
 protected:
  LocalFilesTest() {
    std::ofstream(folder_ + "/a") << "0123456789";
    fs::create_directory(folder_ + "/sub");
    fs::create_symlink("a", folder_ + "/link");
    fs::create_symlink("sub", folder_ + "/sublink");
    EXPECT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  }

  static std::string refusal(ErrorKind kind, const std::function<void()>& call) {
    return testing::message_of(call, kind);
  }

  const testing::TemporaryFolder root_;
  const std::string folder_ = root_.path();
};

TEST_F(LocalFilesTest, SizesAreOfRegularFilesAlone) {
  const auto size = [&](const char* name, Links links) { return [=, this] { local_size(folder_ + name, links); }; };
  EXPECT_EQ(local_size(folder_ + "/a", Links::BelowFolder), 10U);
  EXPECT_EQ(local_size(folder_ + "/link", Links::Follow), 10U);
  EXPECT_EQ(local_size(folder_ + "/link", Links::BelowFolder), 10U);
  EXPECT_EQ(refusal(ErrorKind::InvalidArgument, size("/sub", Links::Follow)),
            folder_ + "/sub: not a regular file but a folder");
  EXPECT_EQ(refusal(ErrorKind::InvalidArgument, size("/pipe", Links::Follow)),
            folder_ + "/pipe: not a regular file but a pipe or device");
  refusal(ErrorKind::NotFound, size("/none", Links::Follow));
  refusal(ErrorKind::IoError, size("/a/none", Links::Follow));
}

TEST_F(LocalFilesTest, SmallReadsGiveTheBytesAskedForOrSayWhereTheFileEnds) {
  std::array<std::byte, 4> bytes{};
  read_local(folder_ + "/a", 6, bytes);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 4), "6789");
  EXPECT_EQ(refusal(ErrorKind::Corruption, [&] { read_local(folder_ + "/a", 7, bytes); }),
            folder_ + "/a: ends at byte 10, 1 more are wanted");
  refusal(ErrorKind::NotFound, [&] { read_local(folder_ + "/none", 0, bytes); });
  refusal(ErrorKind::IoError, [&] { read_local(folder_ + "/pipe", 0, bytes); });
}

TEST_F(LocalFilesTest, AListingIsSortedAndNamesFoldersWithASlash) {
  EXPECT_EQ(list_local(folder_), (std::vector<std::string>{"a", "link", "pipe", "sub/", "sublink/"}));
  EXPECT_EQ(list_local(folder_ + "/sub"), std::vector<std::string>());
  EXPECT_EQ(refusal(ErrorKind::NotFound, [&] { list_local(folder_ + "/none"); }), folder_ + "/none: no such folder");
  refusal(ErrorKind::IoError, [&] { list_local(folder_ + "/a"); });
}

TEST_F(LocalFilesTest, TheStoreSaysHowItIsBestRead) {
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
}  // namespace penstock
