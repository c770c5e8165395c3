#include "core/engine/row_memory.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

TEST(RowMemory, WhatIsRefusedDoesNotDependOnRowsBefore) {
  ArenaBound bound;
  std::vector<Row> rows(2);
  bind_arenas(rows, 10'000, bound);
  rows[0].arena.allocate(4'000);
  bind_arenas(rows, 10'000, bound);
  EXPECT_EQ(rows[0].arena.capacity_bytes(), 4'000U);
  EXPECT_NO_THROW(rows[1].arena.allocate(10'000));
  EXPECT_THROW(rows[0].arena.allocate(5'000), Error);
  bind_arenas(rows, 10'000, bound);  // 14,000 are kept: more than half
  EXPECT_EQ(rows[0].arena.capacity_bytes() + rows[1].arena.capacity_bytes(), 0U);
  EXPECT_NO_THROW(rows[1].arena.allocate(9'000));
}

}  // namespace
}  // namespace penstock
