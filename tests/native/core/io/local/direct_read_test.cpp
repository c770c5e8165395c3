// One direct read, from the result that the kernel gave.
#include "core/io/local/direct_read.h"

#include "core/base/error.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace penstock {
namespace {

class DirectReadTest : public ::testing::Test {
 protected:
  DirectReadTest() {
    path_ = (std::filesystem::temp_directory_path() / "penstock-direct-XXXXXX").string();
    fd_ = ::mkstemp(path_.data());
    std::string content(20'000, '\0');
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i % 251);
    EXPECT_EQ(::write(fd_, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    file_ = {path_, content.size()};
    for (std::size_t i = 0; i < 2; ++i) {
      reads_[i].file = &file_;
      reads_[i].offset = 5'000 + i * 3'000;
      reads_[i].size = 3'000;
      reads_[i].destination = buffer_.data() + i * 3'000;
      run_[i] = &reads_[i];
    }
  }
  ~DirectReadTest() override {
    ::close(fd_);
    ::unlink(path_.c_str());
  }

  [[nodiscard]] bool right() const {
    for (std::size_t i = 0; i < buffer_.size(); ++i) {
      if (buffer_[i] != static_cast<std::byte>((5'000 + i) % 251)) return false;
    }
    return true;
  }

  std::string path_;
  int fd_ = -1;
  File file_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(6'000);
  Read reads_[2];
  Read* run_[2] = {};
};

TEST_F(DirectReadTest, AnErrorOfTheSystemIsToldWithFileOffsetAndCause) {
  DirectRead read;
  read.plan(run_);
  try {
    read.finish(fd_, run_, -EIO);
    FAIL() << "a read that failed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::IoError);
    EXPECT_EQ(error.error_number(), EIO);
    const std::string words = error.what();
    EXPECT_NE(words.find(path_), std::string::npos) << words;
    EXPECT_NE(words.find("offset 4,096"), std::string::npos) << words;  // of the first block
    EXPECT_NE(words.find("Input/output error"), std::string::npos) << words;
  }
}

TEST_F(DirectReadTest, WhatWasInterruptedPutOffOrCutShortIsReadToItsEnd) {
  for (const int result : {-EINTR, -EAGAIN, 0, 1, 4'096, 6'903}) {
    std::fill(buffer_.begin(), buffer_.end(), std::byte{0xff});
    DirectRead read;
    read.plan(run_);
    // As the kernel would have: so many bytes are there.
    if (result > 0) {
      ASSERT_EQ(::pread(fd_, read.piece().iov_base, static_cast<std::size_t>(result), 4'096), result);
    }
    read.finish(fd_, run_, result);
    EXPECT_TRUE(right()) << result;
  }
}

}  // namespace
}  // namespace penstock
