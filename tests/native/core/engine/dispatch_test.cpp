// Who is given what, and what wakes whom: the monitor that threads and the consumer meet in.
#include "core/engine/dispatch.h"

#include "core/base/error.h"
#include "core/engine/batch_work.h"
#include "tests/native/core/engine/loader_fixture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Phase = Batch::Phase;

std::shared_ptr<Batch> planned_batch(std::uint64_t rows) {
  auto formats = std::make_shared<BatchFormats>();
  formats->push_back(format_of({}, 5));
  auto batch = std::make_shared<Batch>();
  batch->formats = formats;
  batch->format = &formats->front();
  batch->plan.rows = batch->plan.valid = rows;
  batch->picks.resize(rows);
  BatchWork(*batch).prepare_rows();
  return batch;
}

std::unique_ptr<RowReader> idle_reader() {
  return std::make_unique<RowReader>([](const RowReader::Ended&) {}, StoreChoice(), ChannelMode::MayWait);
}

std::exception_ptr error_of(const char* what) {
  return std::make_exception_ptr(Error(ErrorKind::IoError, what));
}

std::string what(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return known.what();
  }
}

TEST(Dispatch, AThreadThatSleepsIsWokenForABatchAndReturnsWhenAllAreDismissed) {
  Dispatch dispatch(1, 2);
  Dispatch::Worker worker;
  worker.reader = idle_reader();
  dispatch.add(worker);
  Claim claim;
  auto claimed = std::async(std::launch::async, [&] {
    auto now = Clock::now();
    return dispatch.claim(worker, claim, now);
  });
  EXPECT_EQ(claimed.wait_for(20ms), std::future_status::timeout) << "there is nothing to do";
  const auto batch = planned_batch(3);
  dispatch.push(batch);
  dispatch.top_up(1, false);
  EXPECT_TRUE(claimed.get());
  EXPECT_EQ(claim.batch, batch);
  EXPECT_TRUE(claim.pick);
  EXPECT_EQ(batch->phase, Phase::Picking);
  auto dismissed = std::async(std::launch::async, [&] {
    Claim none;
    auto now = Clock::now();
    return dispatch.claim(worker, none, now);
  });
  EXPECT_EQ(dismissed.wait_for(20ms), std::future_status::timeout) << "its rows are for who picked them";
  dispatch.dismiss();
  EXPECT_FALSE(dismissed.get());
}

TEST(Dispatch, ABatchThatWasPickedIsReadFromItsFirstRow) {
  Dispatch dispatch(1, 2);
  const auto batch = planned_batch(40);
  dispatch.push(batch);
  Claim claim;
  ASSERT_TRUE(dispatch.claim_for_consumer(claim));
  EXPECT_EQ(dispatch.picked(claim, {}, nullptr), Dispatch::Picked::Rows);
  EXPECT_EQ(batch->phase, Phase::Reading);
  EXPECT_EQ(claim.first, 0U);
  EXPECT_GT(claim.last, 0U);
  Claim more;
  ASSERT_TRUE(dispatch.claim_for_consumer(more));
  EXPECT_EQ(more.first, claim.last);
}

TEST(Dispatch, TheErrorOfTheLowestRowIsReportedAndWakesTheConsumer) {
  Dispatch dispatch(1, 2);
  const auto batch = planned_batch(3);
  dispatch.push(batch);
  Claim claim;
  ASSERT_TRUE(dispatch.claim_for_consumer(claim));
  ASSERT_EQ(dispatch.picked(claim, {}, nullptr), Dispatch::Picked::Rows);
  auto waits = std::async(std::launch::async, [&] { dispatch.sleep_until_settled(*batch, Clock::now() + 30s); });
  dispatch.note_error(*batch, 2, error_of("third row"));
  dispatch.note_error(*batch, 1, error_of("second row"));
  dispatch.note_error(*batch, 2, error_of("third row again"));
  EXPECT_EQ(waits.wait_for(20ms), std::future_status::timeout) << "other rows are under way";
  dispatch.enter(*batch, Phase::Ready);
  waits.get();
  EXPECT_EQ(batch->phase, Phase::Failed);
  EXPECT_EQ(what(batch->error), "second row");
}

TEST(Dispatch, APickThatFailsEndsTheBatch) {
  Dispatch dispatch(1, 2);
  const auto batch = planned_batch(3);
  dispatch.push(batch);
  Claim claim;
  ASSERT_TRUE(dispatch.claim_for_consumer(claim));
  EXPECT_EQ(dispatch.picked(claim, {}, error_of("no order")), Dispatch::Picked::Waits);
  EXPECT_EQ(batch->phase, Phase::Failed);
  EXPECT_EQ(what(batch->error), "no order");
  Claim none;
  EXPECT_FALSE(dispatch.claim_for_consumer(none));
}

TEST(Dispatch, WhatWasCancelledIsClaimedByNobody) {
  Dispatch dispatch(1, 2);
  const auto batch = planned_batch(3);
  dispatch.push(batch);
  dispatch.cancel_all();
  EXPECT_TRUE(batch->cancelled);
  Claim none;
  EXPECT_FALSE(dispatch.claim_for_consumer(none));
}

}  // namespace
}  // namespace penstock::testing
