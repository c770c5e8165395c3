#include "core/io/http/request_headers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::testing {
namespace {

using Lines = std::vector<std::string>;

Lines lines(const curl_slist* list) {
  Lines found;
  for (; list != nullptr; list = list->next) found.emplace_back(list->data);
  return found;
}

TEST(RequestHeaders, ARequestOfTheWholeFileHasNoRange) {
  RequestHeaders headers;
  headers.set_fixed({"X-Own: 1"});
  const Lines fixed{"X-Own: 1", "Accept-Encoding: identity", "User-Agent: penstock", "Accept:"};
  EXPECT_EQ(lines(headers.whole()), fixed);
  Lines with_range = fixed;
  with_range.emplace_back("Range: bytes=0-99");
  EXPECT_EQ(lines(headers.range(0, 100)), with_range);
  with_range.back() = "Range: bytes=18446744073709551000-18446744073709551614";  // longer than the one before
  EXPECT_EQ(lines(headers.range(18446744073709551000U, 18446744073709551615U)), with_range);
  EXPECT_EQ(lines(headers.whole()), fixed);
}

TEST(RequestHeaders, WhatIsGivenReplacesWhatIsSentOtherwise) {
  RequestHeaders headers;
  headers.set_fixed({"user-agent: mine", "ACCEPT: text/plain"});
  EXPECT_EQ(lines(headers.whole()), (Lines{"user-agent: mine", "ACCEPT: text/plain", "Accept-Encoding: identity"}));
}

}  // namespace
}  // namespace penstock::testing
