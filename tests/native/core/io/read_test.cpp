// How a read ended, and small files read whole.
#include "core/io/read.h"

#include "core/base/error.h"
#include "tests/native/core/io/memory_store.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock {
namespace {

TEST(ReadTest, OneThatFailedKeepsItsError) {
  Read read;
  EXPECT_EQ(read.outcome, Outcome::Done);
  read.fail(std::make_exception_ptr(Error(ErrorKind::IoError, "broken")));
  EXPECT_EQ(read.outcome, Outcome::Failed);
  EXPECT_THROW(std::rethrow_exception(read.error), Error);
}

TEST(ReadTest, ASmallFileIsReadWholeUpToItsBound) {
  testing::MemoryStore store;
  store.put("a", std::vector<std::byte>(5, std::byte{'x'}));
  store.put("empty", {});
  EXPECT_EQ(read_whole(store, "a", 5, Links::Refuse), "xxxxx");
  EXPECT_EQ(read_whole(store, "empty", 5, Links::Refuse), "");
  try {
    read_whole(store, "a", 4, Links::Refuse);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Corruption);
    EXPECT_STREQ(error.what(), "a: 5 bytes, at most 4 can be");
  }
}

}  // namespace
}  // namespace penstock
