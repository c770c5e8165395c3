#include "core/batch/slab.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace penstock::testing {
namespace {

std::int64_t page_faults() {
  ::rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

TEST(Slab, OwnMemoryIsPageAlignedOfAnySizeAndKeptUnlessItIsTooSmall) {
  Slab slab;
  const std::byte* before = nullptr;
  for (const std::uint64_t bytes : {0, 1, 5'000, 262'143, 262'144, 300'000, 9'000'000, 20'000'000}) {
    slab.ensure(bytes);
    ASSERT_NE(slab.data(), nullptr);
    EXPECT_GE(slab.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab.data()) % 4096, 0U);
    std::memset(slab.data(), 7, slab.bytes());
    before = slab.data();
    slab.ensure(bytes / 2);
    EXPECT_EQ(slab.data(), before);
  }
  EXPECT_THROW(slab.ensure(UINT64_MAX), std::bad_alloc);
  EXPECT_THROW(slab.ensure(std::uint64_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(slab.data(), before) << "what there is no memory for takes nothing away";
}

TEST(Slab, LargeMemoryGrowsWithItsPagesInIt) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "where the memory has to move, TSan's shadow of the new place has eight times its pages";
#endif
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;
  Slab slab;
  slab.ensure(kBytes);
  std::memset(slab.data(), 7, slab.bytes());
  slab.ensure(kBytes + 65'536);
  const std::int64_t before = page_faults();
  std::memset(slab.data(), 8, slab.bytes());
  EXPECT_LE(page_faults() - before, 100) << "of 272 pages 16 are new; sanitizers add their shadow's";
}

TEST(Slab, LentMemoryStandsInForItsOwn) {
  Slab slab;
  slab.ensure(10);
  const std::byte* own = slab.data();
  auto owner = std::make_shared<std::byte>();
  slab.lend(owner.get(), 1, owner);
  EXPECT_EQ(slab.data(), owner.get());
  EXPECT_EQ(slab.bytes(), 1U);
  slab.release_lent();
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(slab.data(), own);
}

}  // namespace
}  // namespace penstock::testing
