// A file that is mapped is looked at before its bytes are.
#include "bindings/watched_file.h"

#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

namespace penstock::bindings {
namespace {

class Watched : public ::testing::Test {
 protected:
  Watched() {
    std::ofstream(path_) << "0123456789";
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    file_ = std::make_unique<WatchedFile>(fd, path_);
    ::close(fd);  // it has one of its own
  }

  const penstock::testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "order.npy";
  std::unique_ptr<WatchedFile> file_;
};

TEST_F(Watched, IsTheSameUntilItIsCutOrWritten) {
  EXPECT_NO_THROW(file_->check_same());
  std::filesystem::resize_file(path_, 4);
  penstock::testing::expect_error([&] { file_->check_same(); }, ErrorKind::Corruption, "order.npy: changed since");
}

TEST_F(Watched, IsAnotherAfterItWasWrittenWithTheSameSize) {
  const timespec times[2] = {{0, UTIME_OMIT}, {12345, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  EXPECT_THROW(file_->check_same(), Error);
}

TEST_F(Watched, StaysWhatItIsWhenItsNameIsGivenToAnotherFile) {
  std::ofstream(folder_ / "new.npy") << "other";
  std::filesystem::rename(folder_ / "new.npy", path_);
  EXPECT_NO_THROW(file_->check_same());
}

TEST_F(Watched, RefusesADescriptorThatIsNone) {
  EXPECT_THROW(WatchedFile(-1, "x"), Error);
}

}  // namespace
}  // namespace penstock::bindings
