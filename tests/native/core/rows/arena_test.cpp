#include "core/rows/arena.h"

#include "tests/native/message_of.h"

namespace penstock::testing {
namespace {

TEST(Arena, WhatABoundDoesNotAllowToItsArenasTogetherIsRefusedAndNothingIsLost) {
  ArenaBound bound;
  bound.restart(20'000);
  Arena arena;
  Arena other;
  for (Arena* each : {&arena, &other}) each->bound_by(&bound);
  other.allocate(10'000);
  arena.allocate(6'000);
  const auto refuse = [&](std::uint64_t bytes, const char* words) {
    expect_error([&] { arena.allocate(bytes); }, ErrorKind::InvalidArgument, words);
  };
  refuse(1ULL << 40, "1,099,511,627,776 bytes");
  refuse(8'000, "more than the 20,000 bytes");
  arena.allocate(4'000);  // exactly, where twice as much as before would be too much
  EXPECT_EQ(arena.capacity_bytes(), 10'000U);
}

TEST(Arena, SizesThatNoMachineHasAreRefusedWithoutABound) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the process where an allocation is beyond its limit";
#endif
  Arena arena;
  for (const std::uint64_t bytes : {UINT64_MAX, UINT64_MAX - 20, std::uint64_t{1} << 63, std::uint64_t{1} << 62}) {
    message_of([&] { arena.allocate(bytes); }, ErrorKind::InvalidArgument);
  }
  EXPECT_THROW(arena.make_array<std::uint64_t>(1ULL << 61), Error);  // times 8 it would be 0
}

}  // namespace
}  // namespace penstock::testing
