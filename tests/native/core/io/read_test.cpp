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

}  // namespace
}  // namespace penstock
