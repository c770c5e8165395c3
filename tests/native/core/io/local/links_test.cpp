// Where a dataset's links may lead.
#include "core/io/local/links.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace penstock {
namespace {

namespace fs = std::filesystem;

class LinksTest : public ::testing::Test {
 protected:
  LinksTest() {
    std::string name = (fs::temp_directory_path() / "penstock-links-XXXXXX").string();
    root_ = fs::canonical(::mkdtemp(name.data())).string();
    for (const char* folder : {"hub/blobs", "hub/snapshots/abc/data/00000", "hub/other", "data/00000", "data2"}) {
      fs::create_directories(root_ + "/" + folder);
    }
    for (const char* file : {"hub/blobs/f00d", "hub/other/file", "data/file", "data2/file", "outside"}) {
      std::ofstream(root_ + "/" + file) << "bytes";
    }
  }
  ~LinksTest() override { fs::remove_all(root_); }

  // What check_links() says of a link at `path` to `target`; "" if it is allowed.
  std::string said(const std::string& path, const std::string& target, Links links) const {
    const std::string link = root_ + "/" + path;
    fs::remove(link);
    fs::create_symlink(target, link);
    try {
      check_links(link, links);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Corruption) << error.what();
      return error.what();
    }
    return "";
  }

  std::string root_;
};

TEST_F(LinksTest, ALinkMayLeadToAFileOfItsOwnDataset) {
  EXPECT_EQ(said("data/dataset.json", "file", Links::BelowFolder), "");
  EXPECT_EQ(said("data/dataset.json", root_ + "/data/file", Links::BelowFolder), "");
  EXPECT_EQ(said("data/00000/stream.bin", "../file", Links::BelowParent), "");
  EXPECT_EQ(said("data/00000/stream.bin", "../../outside", Links::Follow), "");
}

TEST_F(LinksTest, ALinkOutOfTheDatasetIsRefusedWithItsTarget) {
  const std::string link = root_ + "/data/00000/stream.bin";
  EXPECT_EQ(said("data/00000/stream.bin", "../../outside", Links::BelowParent),
            link + ": a symbolic link out of the dataset, to " + root_ +
                "/outside: put the file itself there (cp -L), or open a copy without links");
  EXPECT_NE(said("data/00000/stream.bin", "/etc/passwd", Links::BelowParent), "");
  EXPECT_NE(said("data/dataset.json", "../outside", Links::BelowFolder), "");
  EXPECT_NE(said("data/dataset.json", "../data2/file", Links::BelowFolder), "") << "a name that only begins alike";
}

TEST_F(LinksTest, AFolderThatIsALinkIsNoWayOut) {
  fs::create_directories(root_ + "/elsewhere/00001");
  std::ofstream(root_ + "/elsewhere/00001/stream.bin") << "bytes";
  fs::create_symlink("../elsewhere/00001", root_ + "/data/00001");
  EXPECT_THROW(check_links(root_ + "/data/00001/stream.bin", Links::BelowParent), Error);
  std::ofstream(root_ + "/data/00000/stream.bin") << "bytes";
  fs::create_symlink("00000", root_ + "/data/00002");
  EXPECT_NO_THROW(check_links(root_ + "/data/00002/stream.bin", Links::BelowParent));
}

TEST_F(LinksTest, InACacheOfHuggingFaceItMayLeadToItsBlobs) {
  const std::string data = "hub/snapshots/abc/data/";
  EXPECT_EQ(said(data + "00000/stream.bin", "../../../../blobs/f00d", Links::BelowParent), "");
  EXPECT_EQ(said(data + "dataset.json", "../../../blobs/f00d", Links::BelowFolder), "");
  EXPECT_EQ(said("hub/snapshots/abc/dataset.json", "../../blobs/f00d", Links::BelowFolder), "");
  EXPECT_NE(said(data + "00000/stream.bin", "../../../../other/file", Links::BelowParent), "");
  EXPECT_NE(said("data/00000/stream.bin", "../../hub/blobs/f00d", Links::BelowParent), "") << "not from elsewhere";
}

}  // namespace
}  // namespace penstock
