// One direct read, from the result that the kernel gave.
#include "core/io/local/direct_read.h"

#include "tests/native/core/io/wanted_read.h"
#include "tests/native/temporary_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <fstream>

namespace penstock::testing {
namespace {

class DirectReadTest : public ::testing::Test {
 protected:
  DirectReadTest() { std::ofstream(file_.path(), std::ios::binary) << content_of(file_.bytes); }
  ~DirectReadTest() override { ::close(fd_); }

  /// Two neighbours, read by what the kernel gave of the first block on.
  std::deque<WantedRead> finish(int result) {
    std::deque<WantedRead> wanted;
    for (const std::uint64_t offset : {5'000, 8'000}) wanted.emplace_back(file_, offset, 3'000);
    const std::vector<Read*> run = pointers_to(wanted);
    DirectRead read;
    read.plan(run);
    // As the kernel would have: so many bytes are there.
    if (result > 0) {
      EXPECT_EQ(::pread(fd_, read.piece().iov_base, static_cast<std::size_t>(result), 4'096), result);
    }
    read.finish(fd_, run, result);
    return wanted;
  }

  const TemporaryFolder folder_;
  const File file_{folder_ / "file", 20'000};
  const int fd_ = ::open(file_.path().c_str(), O_RDWR | O_CREAT, 0600);
};

TEST_F(DirectReadTest, WhatWasInterruptedPutOffOrCutShortIsReadToItsEnd) {
  for (const int result : {-EINTR, -EAGAIN, 0, 1, 4'096, 6'903}) {
    for (const WantedRead& one : finish(result)) EXPECT_TRUE(one.right(0)) << result;
  }
}

TEST_F(DirectReadTest, AnErrorOfTheSystemIsToldWithFileOffsetAndCause) {
  try {
    finish(-EIO);
    FAIL() << "a read that failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.error_number(), EIO);
    const std::string words = error.what();
    for (const std::string& part : {file_.path(), std::string("offset 4,096"), std::string("Input/output error")}) {
      EXPECT_NE(words.find(part), std::string::npos) << words;  // 4,096: of the first block
    }
  }
}

}  // namespace
}  // namespace penstock::testing
