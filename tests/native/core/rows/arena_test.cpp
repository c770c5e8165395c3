#include "core/rows/arena.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace penstock {
namespace {

std::string refusal(Arena& arena, std::uint64_t bytes) {
  try {
    arena.allocate(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Arena, WhatABoundDoesNotAllowIsRefusedAndNothingIsLost) {
  ArenaBound bound;
  bound.restart(10'000);
  Arena arena;
  arena.bound_by(&bound);
  EXPECT_EQ(refusal(arena, 4'000), "");
  EXPECT_NE(refusal(arena, 1ULL << 40).find("1,099,511,627,776 bytes"), std::string::npos);
  EXPECT_NE(refusal(arena, 8'000).find("more than the 10,000 bytes"), std::string::npos);
  EXPECT_EQ(refusal(arena, 6'000), "");  // exactly, where twice as much as before would be too much
  EXPECT_EQ(arena.capacity_bytes(), 10'000U);
}

TEST(Arena, ArenasOfOneBoundShareIt) {
  ArenaBound bound;
  bound.restart(10'000);
  Arena a;
  Arena b;
  a.bound_by(&bound);
  b.bound_by(&bound);
  EXPECT_EQ(refusal(a, 6'000), "");
  EXPECT_NE(refusal(b, 6'000), "");
  EXPECT_EQ(refusal(b, 4'000), "");
}

TEST(Arena, SizesThatNoMachineHasAreRefusedWithoutABound) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the process where an allocation is beyond its limit";
#endif
  Arena arena;
  for (const std::uint64_t bytes : {UINT64_MAX, UINT64_MAX - 20, std::uint64_t{1} << 63, std::uint64_t{1} << 62}) {
    EXPECT_NE(refusal(arena, bytes), "") << bytes;
  }
  EXPECT_THROW(arena.make_array<std::uint64_t>(1ULL << 61), Error);  // times 8 it would be 0
}

}  // namespace
}  // namespace penstock
