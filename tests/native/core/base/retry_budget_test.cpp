// An operation may spend on requests that fail: their sum one after the other, once where they fail side by side.
#include "core/base/retry_budget.h"

#include "core/base/error.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <thread>

namespace penstock::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kWholeDeadline{60};

TEST(RetryBudget, FailuresOneAfterTheOtherSpendTheirSumAndASecondIsAlwaysLeft) {
  RetryBudget budget;
  const auto begin = RetryBudget::Clock::now();
  EXPECT_EQ(budget.left(kWholeDeadline), kWholeDeadline);
  budget.answered(begin, true, begin + seconds(20));
  EXPECT_EQ(budget.left(kWholeDeadline), seconds(40));
  budget.answered(begin + seconds(30), true, begin + seconds(45));
  EXPECT_EQ(budget.left(kWholeDeadline), seconds(25));
  budget.answered(begin + seconds(45), false, begin + seconds(145));
  EXPECT_EQ(budget.left(kWholeDeadline), seconds(25)) << "an answer that was slow and good spends nothing";
  budget.answered(begin + seconds(145), true, begin + seconds(245));
  EXPECT_EQ(budget.left(kWholeDeadline), seconds(1));
  EXPECT_EQ(budget.left(milliseconds(300)), milliseconds(75));
  EXPECT_TRUE(budget.is_spent(kWholeDeadline)) << "that second is for one attempt";
  EXPECT_FALSE(budget.is_spent(seconds(200)));
  budget.reset();
  EXPECT_EQ(budget.left(kWholeDeadline), kWholeDeadline);
}

TEST(RetryBudget, FailuresSideBySideSpendTheTimeWithoutAGoodAnswer) {
  RetryBudget budget;
  const auto begin = RetryBudget::Clock::now();
  for (int i = 0; i < 100; ++i) budget.answered(begin, true, begin + seconds(20));
  EXPECT_EQ(budget.left(kWholeDeadline), seconds(40));
  for (int i = 1; i <= 1'000; ++i) {  // good ones come all the while
    budget.answered(begin + seconds(20), false, begin + seconds(20) + milliseconds(10 * i));
    budget.answered(begin + seconds(20), true, begin + seconds(20) + milliseconds(10 * i + 1));
  }
  EXPECT_GE(budget.left(kWholeDeadline), seconds(38));
}

TEST(RetryBudget, WhereOneIsGivenUpTheOthersFailLikeItOrHaveAnAttempt) {
  const auto why = std::make_exception_ptr(Error(ErrorKind::IoError, "the first"));
  RetryBudget fails;
  EXPECT_EQ(fails.failure(), nullptr);
  fails.give_up(why);
  fails.give_up(std::make_exception_ptr(Error(ErrorKind::IoError, "the second")));
  EXPECT_EQ(message_of([&] { std::rethrow_exception(fails.failure()); }, ErrorKind::IoError), "the first");
  RetryBudget tries(RetryBudget::Others::TryOnce);
  const auto then = RetryBudget::Clock::now();
  tries.give_up(why, then);
  EXPECT_EQ(tries.failure(), nullptr);
  EXPECT_EQ(tries.left(kWholeDeadline), seconds(1));
  EXPECT_EQ(tries.refusal(then + milliseconds(999)), nullptr);
  EXPECT_NE(tries.refusal(then + milliseconds(1001)), nullptr) << "none was answered well since";
  tries.answered(then, false, then + milliseconds(1500));
  EXPECT_EQ(tries.refusal(then + milliseconds(2499)), nullptr);
  EXPECT_NE(tries.refusal(then + milliseconds(2501)), nullptr);
  EXPECT_EQ(tries.failure(), nullptr) << "those under way go on";
  tries.reset();
  EXPECT_EQ(tries.refusal(then + seconds(9)), nullptr);
}

TEST(RetryBudget, AnOperationIsOfItsThreadAndAnInnerOneIsAPartOfIt) {
  EXPECT_EQ(RetryBudget::present(), nullptr);
  RetryBudget outer;
  RetryBudget inner;
  {
    const RetryBudget::Operation operation(outer);
    {
      const RetryBudget::Operation part(inner);
      EXPECT_EQ(RetryBudget::present(), &outer);
      const RetryBudget::Operation apart(inner, true);
      EXPECT_EQ(RetryBudget::present(), &inner);
    }
    EXPECT_EQ(RetryBudget::present(), &outer);
    std::thread([] { EXPECT_EQ(RetryBudget::present(), nullptr); }).join();
  }
  EXPECT_EQ(RetryBudget::present(), nullptr);
}

}  // namespace
}  // namespace penstock::testing
