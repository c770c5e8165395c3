#include "core/io/http/reply.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace penstock::testing {
namespace {

Reply reply(std::initializer_list<std::string_view> lines) {
  Reply result;
  for (const std::string_view line : lines) result.add(line);
  return result;
}

Worth worth(std::initializer_list<std::string_view> lines, const Wanted& wanted = {100, 200, 1000, "\"one\""}) {
  const Judgement judgement = judge(reply(lines), wanted);
  EXPECT_EQ(judgement.worth == Worth::Good, judgement.reason.empty()) << judgement.reason;
  return judgement.worth;
}

TEST(Reply, AHeaderIsReadWhateverItsCaseAndSpaces) {
  const Reply good = reply({"HTTP/1.1 206 Partial Content\r\n", "CONTENT-RANGE:bytes 100-199/1000\r\n",
                            "content-length:  100 \r\n", "ETag: \"one\"\r\n", "Retry-After: 7", "\r\n"});
  EXPECT_EQ(good.status, 206);
  ASSERT_TRUE(good.range);
  EXPECT_EQ(good.range->begin, 100U);
  EXPECT_EQ(good.range->end, 200U);
  EXPECT_EQ(good.range->total, 1000U);
  EXPECT_EQ(good.length, 100U);
  EXPECT_EQ(good.etag, "\"one\"");
  EXPECT_EQ(good.retry_after, std::chrono::seconds(7));
}

TEST(Reply, AStatusLineBeginsANewOne) {
  const Reply last = reply({"HTTP/1.1 100 Continue", "ETag: \"old\"", "", "HTTP/1.1 503 Slow Down"});
  EXPECT_EQ(last.status, 503);
  EXPECT_EQ(last.etag, "");
}

TEST(Reply, WhatIsNotWellFormedHasNotCome) {
  for (const char* range : {"bytes 100-199", "bytes 199-100/1000", "items 100-199/1000", "bytes -199/1000",
                            "bytes 100-18446744073709551615/*", "bytes a-b/c", "bytes ", ""}) {
    EXPECT_FALSE(reply({"HTTP/1.1 206 OK", std::string("Content-Range: ") + range}).range) << range;
  }
  EXPECT_FALSE(reply({"HTTP/1.1 503 x", "Retry-After: soon"}).retry_after);
  EXPECT_EQ(reply({"HTTP/1.1 503 x", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"}).retry_after,
            std::chrono::seconds(0));
  EXPECT_EQ(reply({"HTTP/1.1 503 x", "Retry-After: 99999999999"}).retry_after, std::chrono::hours(24));
}

TEST(Reply, OnlyTheRangeThatWasAskedForIsGood) {
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-199/1000"}), Worth::Good);
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-199/*"}), Worth::Good);
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-199/1000", "Etag: \"one\""}), Worth::Good);
  EXPECT_EQ(worth({"HTTP/1.1 206 x"}), Worth::Again);
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 0-199/1000"}), Worth::Again);
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-299/1000"}), Worth::Again);
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-149/1000"}), Worth::Again);
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-199/1000", "Content-Length: 50"}), Worth::Again);
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-199/1000", "Content-Encoding: GZIP"}), Worth::Again);
}

TEST(Reply, AnotherFileIsTold) {
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-199/999"}), Worth::Changed);
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-149/150"}), Worth::Changed);
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-149/150"}, {100, 200, 0, ""}), Worth::Changed);
  EXPECT_EQ(worth({"HTTP/1.1 206 x", "Content-Range: bytes 100-199/1000", "ETag: \"two\""}), Worth::Changed);
  EXPECT_EQ(worth({"HTTP/1.1 416 x", "Content-Range: bytes */50"}), Worth::Changed);
  EXPECT_EQ(worth({"HTTP/1.1 412 x"}), Worth::Changed);
}

TEST(Reply, EachStatusHasItsConsequence) {
  EXPECT_EQ(worth({"HTTP/1.1 200 OK"}), Worth::NoRanges);
  for (const char* status : {"408", "429", "500", "502", "503", "504", "599", "xyz"}) {
    EXPECT_EQ(worth({std::string("HTTP/1.1 ") + status + " x"}), Worth::Again) << status;
  }
  for (const char* status : {"301", "302", "303", "307", "308"}) {
    EXPECT_EQ(worth({std::string("HTTP/1.1 ") + status, "Location: /there"}), Worth::Elsewhere) << status;
    EXPECT_EQ(worth({std::string("HTTP/1.1 ") + status}), Worth::Unwanted) << status;
  }
  const Wanted any{100, 200, 1000, ""};
  const Judgement elsewhere = judge(reply({"HTTP/1.1 301 x", "x-amz-bucket-region: eu-north-1"}), any);
  EXPECT_EQ(elsewhere.worth, Worth::Unwanted);
  EXPECT_NE(elsewhere.reason.find("region=\"eu-north-1\""), std::string::npos);
  EXPECT_EQ(worth({"HTTP/1.1 401 x"}), Worth::Refused);
  EXPECT_EQ(worth({"HTTP/1.1 403 x"}), Worth::Refused);
  EXPECT_EQ(worth({"HTTP/1.1 404 x"}), Worth::Missing);
  EXPECT_EQ(worth({"HTTP/1.1 400 x"}), Worth::Unwanted);
}

TEST(ErrorCode, IsTheNameInTheBodyAndNothingElse) {
  EXPECT_EQ(error_code("<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code><Message>x</Message>"), "NoSuchBucket");
  EXPECT_EQ(error_code("<html>404 Not Found</html>"), "");
  EXPECT_EQ(error_code("<Code>no letters alone</Code>"), "");
  EXPECT_EQ(error_code("<Code>CutOf"), "");
  EXPECT_EQ(error_code(""), "");
}

}  // namespace
}  // namespace penstock::testing
