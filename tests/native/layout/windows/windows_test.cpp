// Windows over several shards, without spans; and what the views refuse.
#include "layout/windows/windows.h"

#include "core/base/error.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

namespace penstock::testing {
namespace {

using layout::SpanKind;

ModelShard tokens(std::uint64_t records) {
  return {{{records, ""}}, {}, {}};
}

TEST(WindowsTest, EveryWindowOfATokenStreamCrossesShardsAsIfThereWereNone) {
  expect_all_windows(Model(SpanKind::None, {tokens(5), tokens(0), tokens(1), tokens(7), tokens(0)}));
}

TEST(WindowsTest, EmptyShardsBeforeTheFirstRecordAreNoObstacle) {
  expect_all_windows(Model(SpanKind::None, {tokens(0), tokens(0), tokens(3)}));
}

TEST(WindowsTest, TokenWindowsTakeOneReadAShardAndOneRound) {
  const Model model(SpanKind::None, {tokens(5), tokens(0), tokens(1), tokens(7)});
  const auto source = layout::make_windows(model.dataset(), 12, 1);
  Driven driven;
  drive(*source, 0, driven);
  EXPECT_EQ(driven.reads.size(), 3U);
  EXPECT_EQ(driven.rounds, 1U);
}

TEST(WindowsTest, IdentityIsCanonicalJsonOfWindowAndLookahead) {
  const Model model(SpanKind::None, {tokens(5)});
  EXPECT_EQ(layout::make_windows(model.dataset(), 3, 1)->info().identity.view,
            R"({"kind":"windows","lookahead":1,"window":3})");
}

TEST(WindowsTest, AWindowLongerThanTheStreamIsRefusedWithBothNumbers) {
  const Model model(SpanKind::None, {tokens(5), tokens(6)});
  const std::string message =
      message_of([&] { layout::make_windows(model.dataset(), 11, 1); }, ErrorKind::InvalidArgument);
  EXPECT_NE(message.find("window 11 + lookahead 1"), std::string::npos) << message;
  EXPECT_NE(message.find("11 records"), std::string::npos) << message;
}

TEST(WindowsTest, WindowZeroAndOverflowingWindowsAreRefused) {
  const Model model(SpanKind::None, {tokens(5)});
  message_of([&] { layout::make_windows(model.dataset(), 0, 0); }, ErrorKind::InvalidArgument);
  message_of([&] { layout::make_windows(model.dataset(), UINT64_MAX, 1); }, ErrorKind::InvalidArgument);
}

TEST(WindowsTest, AStreamShorterThanItsRecordsIsCorrupt) {
  const Model model(SpanKind::None, {tokens(5)});
  layout::Dataset broken = *model.dataset();
  broken.shards[0].records = 6;
  message_of([&] { broken.finish(); }, ErrorKind::Corruption);
  broken.shards[0].records = UINT64_MAX;
  message_of([&] { broken.finish(); }, ErrorKind::Corruption);
}

}  // namespace
}  // namespace penstock::testing
