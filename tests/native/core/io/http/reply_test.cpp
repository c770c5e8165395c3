#include "core/io/http/reply.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace penstock::testing {
namespace {

using Lines = std::initializer_list<std::string_view>;

Reply reply(Lines lines) {
  Reply result;
  for (const std::string_view line : lines) result.add(line);
  return result;
}

void expect(Worth worth, Lines lines, const Wanted& wanted = {100, 200, 1000, "\"one\""}) {
  const Judgement judgement = judge(reply(lines), wanted);
  EXPECT_EQ(judgement.worth, worth) << *lines.begin() << ": " << judgement.reason;
  EXPECT_EQ(judgement.worth == Worth::Good, judgement.reason.empty()) << judgement.reason;
}

TEST(Reply, AHeaderIsReadWhateverItsCaseAndSpacesAStatusLineBeginsANewReplyAndWhatIsMalformedHasNotCome) {
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
  const Reply last = reply({"HTTP/1.1 100 Continue", "ETag: \"old\"", "", "HTTP/1.1 503 Slow Down"});
  EXPECT_EQ(last.status, 503);
  EXPECT_EQ(last.etag, "");
  for (const char* range : {"bytes 100-199", "bytes 199-100/1000", "items 100-199/1000", "bytes -199/1000",
                            "bytes 100-18446744073709551615/*", "bytes a-b/c", "bytes ", ""}) {
    EXPECT_FALSE(reply({"HTTP/1.1 206 OK", std::string("Content-Range: ") + range}).range) << range;
  }
  EXPECT_FALSE(reply({"Retry-After: soon"}).retry_after);
  EXPECT_EQ(reply({"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"}).retry_after, std::chrono::seconds(0));
  EXPECT_EQ(reply({"Retry-After: 99999999999"}).retry_after, std::chrono::hours(24));
}

TEST(Reply, OnlyTheRangeThatWasAskedForIsGoodAndAnotherFileIsTold) {
  const char* const status = "HTTP/1.1 206 x";
  const char* const right = "Content-Range: bytes 100-199/1000";
  expect(Worth::Good, {status, right});
  expect(Worth::Good, {status, "Content-Range: bytes 100-199/*"});
  expect(Worth::Good, {status, right, "Etag: \"one\""});
  expect(Worth::Again, {status});
  expect(Worth::Again, {status, "Content-Range: bytes 0-199/1000"});
  expect(Worth::Again, {status, "Content-Range: bytes 100-299/1000"});
  expect(Worth::Again, {status, "Content-Range: bytes 100-149/1000"});
  expect(Worth::Again, {status, "Content-Range: bytes */0"}, {0, 100, 0, "", true});
  expect(Worth::Again, {status, right, "Content-Length: 50"});
  expect(Worth::Again, {status, right, "Content-Encoding: GZIP"});
  expect(Worth::Changed, {status, "Content-Range: bytes 100-199/999"});
  expect(Worth::Changed, {status, "Content-Range: bytes 100-149/150"});
  expect(Worth::Changed, {status, "Content-Range: bytes 100-149/150"}, {100, 200, 0, ""});
  expect(Worth::Changed, {status, right, "ETag: \"two\""});
  expect(Worth::Changed, {"HTTP/1.1 416 x", "Content-Range: bytes */50"});
}

TEST(Reply, EachStatusHasItsConsequence) {
  const auto all = [](Worth worth, std::initializer_list<const char*> statuses, std::string_view header = "") {
    for (const char* status : statuses) expect(worth, {std::string("HTTP/1.1 ") + status, header});
  };
  all(Worth::NoRanges, {"200 OK"});
  all(Worth::Again, {"408 x", "429 x", "500 x", "502 x", "503 x", "504 x", "599 x", "xyz x"});
  all(Worth::Elsewhere, {"301", "302", "303", "307", "308"}, "Location: /there");
  all(Worth::Unwanted, {"301", "302", "303", "307", "308", "400 x"});
  all(Worth::Unwanted, {"301 x", "400 x"}, "x-amz-bucket-region: eu-north-1");
  all(Worth::Refused, {"401 x", "403 x"});
  all(Worth::Missing, {"404 x", "410 x"});
  all(Worth::Changed, {"412 x"});
}

TEST(ErrorCode, IsTheNameInTheBodyAndNothingElse) {
  EXPECT_EQ(error_code("<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code><Message>x</Message>"), "NoSuchBucket");
  for (const char* body : {"<html>404 Not Found</html>", "<Code>no letters alone</Code>", "<Code>CutOf", ""}) {
    EXPECT_EQ(error_code(body), "");
  }
}

}  // namespace
}  // namespace penstock::testing
