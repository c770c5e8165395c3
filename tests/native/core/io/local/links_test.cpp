// Where a dataset's links may lead.
#include "core/io/local/links.h"

#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"

#include <fstream>

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

class LinksTest : public ::testing::Test {
 protected:
  LinksTest() {
    for (const char* folder : {"hub/blobs", "hub/snapshots/abc/data/00000", "hub/other", "data/00000", "data2"}) {
      fs::create_directories(folder_ / folder);
    }
    for (const char* file : {"hub/blobs/f00d", "hub/other/file", "data/file", "data2/file", "outside"}) {
      std::ofstream(folder_ / file) << "bytes";
    }
  }

  // What check_links() says of a link at `path` to `target`; "" if it is allowed.
  [[nodiscard]] std::string said(const std::string& path, const std::string& target, Links links) const {
    const std::string link = folder_ / path;
    fs::remove(link);
    fs::create_symlink(target, link);
    try {
      check_links(link, links);
      return "";
    } catch (const Error&) {
      return message_of([&] { check_links(link, links); }, ErrorKind::Corruption);
    }
  }

  const TemporaryFolder folder_;
};

TEST_F(LinksTest, LeadToFilesOfTheirOwnDatasetOrToBlobsInACacheOfHuggingFace) {
  const std::string data = "hub/snapshots/abc/data/";
  const struct {
    std::string path;
    std::string target;
    Links links;
    bool is_allowed = true;
  } cases[] = {{"data/dataset.json", "file", Links::BelowFolder},
               {"data/dataset.json", folder_ / "data/file", Links::BelowFolder},
               {"data/00000/stream.bin", "../file", Links::BelowParent},
               {"data/00000/stream.bin", "../../outside", Links::Follow},
               {data + "00000/stream.bin", "../../../../blobs/f00d", Links::BelowParent},
               {data + "dataset.json", "../../../blobs/f00d", Links::BelowFolder},
               {"hub/snapshots/abc/dataset.json", "../../blobs/f00d", Links::BelowFolder},
               {data + "00000/stream.bin", "../../../../other/file", Links::BelowParent, false},
               {"data/00000/stream.bin", "../../hub/blobs/f00d", Links::BelowParent, false},  // not from elsewhere
               {"data/00000/stream.bin", "/etc/passwd", Links::BelowParent, false},
               {"data/dataset.json", "../outside", Links::BelowFolder, false},
               {"data/dataset.json", "../data2/file", Links::BelowFolder, false}};  // a name that only begins alike
  for (const auto& [path, target, links, is_allowed] : cases) {
    EXPECT_EQ(said(path, target, links).empty(), is_allowed) << path << " to " << target;
  }
  EXPECT_EQ(said("data/00000/stream.bin", "../../outside", Links::BelowParent),
            folder_ / "data/00000/stream.bin" + ": a symbolic link out of the dataset, to " + folder_ / "outside" +
                ": put the file itself there (cp -L), or open a copy without links");
}

TEST_F(LinksTest, AFolderThatIsALinkIsNoWayOut) {
  fs::create_directories(folder_ / "elsewhere/00001");
  for (const char* name : {"elsewhere/00001/stream.bin", "data/00000/stream.bin"}) std::ofstream(folder_ / name) << "x";
  fs::create_symlink("../elsewhere/00001", folder_ / "data/00001");
  EXPECT_THROW(check_links(folder_ / "data/00001/stream.bin", Links::BelowParent), Error);
  fs::create_symlink("00000", folder_ / "data/00002");
  EXPECT_NO_THROW(check_links(folder_ / "data/00002/stream.bin", Links::BelowParent));
}

}  // namespace
}  // namespace penstock::testing
