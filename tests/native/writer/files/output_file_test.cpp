#include "writer/files/output_file.h"

#include "core/base/crc32c.h"
#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

namespace penstock::writer {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_right(const std::string& path, std::span<const std::byte> data) {
  const std::string text = read(path);
  ASSERT_EQ(text.size(), data.size());
  ASSERT_TRUE(std::equal(data.begin(), data.end(), std::as_bytes(std::span(text)).begin()));
  const std::string crcs = read(path + ".crc");
  ASSERT_EQ(crcs.size(), (data.size() + 4095) / 4096 * 4);
  for (std::size_t block = 0; block * 4096 < data.size(); ++block) {
    std::uint32_t said = 0;
    std::memcpy(&said, crcs.data() + block * 4, 4);
    ASSERT_EQ(said, crc32c(data.subspan(block * 4096, std::min<std::size_t>(4096, data.size() - block * 4096))))
        << block;
  }
}

// Cut into writes of these sizes, again and again.
void expect_right_in_writes_of(std::size_t size, const std::vector<std::size_t>& parts) {
  std::mt19937_64 random(5);
  const testing::TemporaryFolder folder;
  std::vector<std::byte> data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  const Descriptor at = open_folder(AT_FDCWD, folder.path(), folder.path());
  OutputFile file(at.get(), "f", folder / "f");
  std::size_t number = 0;
  for (std::size_t done = 0; done < size; ++number) {
    const std::size_t part = std::min(size - done, parts[number % parts.size()]);
    file.write(std::span(data).subspan(done, part));
    done += part;
  }
  EXPECT_EQ(file.bytes(), size);
  file.finish();
  expect_right(folder / "f", data);
  EXPECT_THROW(OutputFile(at.get(), "f", folder / "f"), Error);  // never an existing file
}

TEST(OutputFile, BytesAndBlockCrcsAreRightHoweverTheyAreCutIntoWrites) {
  constexpr std::size_t kPiece = OutputFile::kPieceBytes;
  for (const std::size_t size : {0UL, 1UL, 4095UL, 4096UL, 4097UL, kPiece - 1, kPiece, kPiece + 5000, 9 * kPiece}) {
    expect_right_in_writes_of(size, {8999, 0, 1, 4096, 17, 5000});
  }
  // Appends as large as a piece are written from where they are; from 8 MiB on the disk is at work before the end.
  constexpr std::size_t kMib = 1 << 20;
  expect_right_in_writes_of(19'000'001, {3 * kMib + 5, 7, 4 * kMib, kMib - 5 - 7, 5 * kMib, 1, kMib, 19'000'001});
}

TEST(OutputFile, RoomThatWasAskedForAndNotUsedGoesBack) {
  const testing::TemporaryFolder folder;
  const Descriptor at = open_folder(AT_FDCWD, folder.path(), folder.path());
  const std::vector<std::byte> data(OutputFile::kPieceBytes);
  for (const std::size_t pieces : {1, 3, 9, 200}) {
    const std::string name = std::to_string(pieces);
    OutputFile file(at.get(), name, folder / name);
    for (std::size_t i = 0; i < pieces; ++i) file.write(data);
    file.write(std::span(data).first(1));
    file.finish();
    struct stat status {};
    ASSERT_EQ(::stat((folder / name).c_str(), &status), 0);
    EXPECT_EQ(static_cast<std::size_t>(status.st_size), pieces * data.size() + 1);
    EXPECT_LE(static_cast<std::size_t>(status.st_blocks) * 512, (pieces + 1) * data.size());
  }
}

TEST(OutputFile, AFullDiskNamesFileOffsetAndCause) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (full.get() < 0) GTEST_SKIP() << "no /dev/full";
  const std::vector<std::byte> data(10);
  const auto write = [&] { write_all(full.get(), data, 4096, "corpus/00000/stream.bin"); };
  testing::expect_error(write, ErrorKind::IoError, "corpus/00000/stream.bin: write of 10 bytes at offset 4,096");
  testing::expect_error(write, ErrorKind::IoError, "No space left on device");
}

}  // namespace
}  // namespace penstock::writer
