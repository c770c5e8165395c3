// Checks while reading, round by round: which rows read whole blocks, and that none ends before its file was compared.
#include "core/base/error.h"
#include "layout/dataset.h"
#include "layout/windows/windows.h"
#include "tests/native/layout/drive.h"
#include "writer/shards/dataset_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

namespace penstock::testing {
namespace {

constexpr std::uint64_t kWindow = 1000;
constexpr std::uint64_t kRowBytes = 4 * kWindow;
constexpr std::uint64_t kBlock = 4096;

/// A row that is planned and read by hand.
class ByHand {
 public:
  ByHand(const Source& source, std::uint64_t index) : source_(source), memory_(kRowBytes) {
    row_.restart(index, kWindow);
    row_.records = memory_.data();
  }
  /// Whether another round follows.
  bool plan() {
    reads.clear();
    return source_.plan(row_, round_++, Parts::Records, reads);
  }
  void read() const {
    for (const Read& each : reads) perform(each);
  }
  [[nodiscard]] std::uint64_t bytes_of_stream() const {
    std::uint64_t bytes = 0;
    for (const Read& each : reads) bytes += each.file->path().ends_with("stream.bin") ? each.size : 0;
    return bytes;
  }
  [[nodiscard]] bool is_right() const {
    for (std::size_t i = 0; i < kWindow; ++i) {
      std::uint32_t token = 0;
      std::memcpy(&token, memory_.data() + 4 * i, 4);
      if (token != row_.index * kWindow + i) return false;
    }
    return true;
  }

  Reads reads;

 private:
  const Source& source_;
  Row row_;
  unsigned round_ = 0;
  std::vector<std::byte> memory_;
};

class ChecksByHand : public ::testing::Test {
 protected:
  ChecksByHand() {
    writer::WriterOptions options;
    options.format = {"stream", "compact", Schema::parse(R"([["token","<u4"]])"), R"({"name":"raw"})"};
    writer::DatasetWriter writer(folder_.path("data"), options);
    std::vector<std::uint32_t> tokens(64 * kWindow);
    for (std::uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = i;
    writer.append(std::as_bytes(std::span(tokens)), std::as_bytes(std::span("entry")));
    writer.commit();
    source_ = layout::make_windows(layout::open_dataset(local(folder_.path("data"))), kWindow, 0);
  }
  TemporaryFolder folder_;
  std::shared_ptr<const Source> source_;
};

TEST_F(ChecksByHand, OfRowsThatAreReadTogetherOneReadsWholeBlocksAndAllEndWithIt) {
  std::deque<ByHand> rows;
  for (const std::uint64_t index : {3, 20, 40, 60}) rows.emplace_back(*source_, index);
  for (ByHand& row : rows) EXPECT_TRUE(row.plan());
  EXPECT_EQ(rows[0].bytes_of_stream() % kBlock, 0U);
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_EQ(rows[i].bytes_of_stream(), kRowBytes) << i;
  for (const ByHand& row : rows) row.read();
  for (ByHand& row : rows) {
    EXPECT_FALSE(row.plan());
    EXPECT_TRUE(row.reads.empty());
    EXPECT_TRUE(row.is_right());
  }
}

TEST_F(ChecksByHand, WhereTheFirstRowHasNotEndedAnotherComparesABlockOfItsOwn) {
  ByHand first(*source_, 3);
  ByHand second(*source_, 20);
  EXPECT_TRUE(first.plan());
  EXPECT_TRUE(second.plan());
  second.read();
  EXPECT_TRUE(second.plan()) << "its file was compared by nobody";
  EXPECT_EQ(second.bytes_of_stream(), kBlock);
  second.read();
  EXPECT_FALSE(second.plan());
  EXPECT_TRUE(second.is_right());
  ByHand third(*source_, 40);
  EXPECT_FALSE(third.plan());
  EXPECT_EQ(third.bytes_of_stream(), kRowBytes);
}

}  // namespace
}  // namespace penstock::testing
