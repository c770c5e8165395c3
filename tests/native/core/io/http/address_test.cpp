#include "core/io/http/address.h"

#include "tests/native/message_of.h"

namespace penstock::testing {
namespace {

TEST(Address, PartsThatMayNotBeShownAreApartOriginsToldApartAndPathsEncodedOnce) {
  const Address plain = parse_address("https://host:8443/a/b/");
  EXPECT_EQ(plain.shown, "https://host:8443/a/b");
  EXPECT_EQ(plain.userinfo + plain.query, "");
  EXPECT_EQ(parse_address("HTTP://Host/Path").shown, "http://host/Path");
  const Address all = parse_address("http://name:se@cret@host/a?token=1?2&b=@");
  EXPECT_EQ(all.shown, "http://host/a");
  EXPECT_EQ(all.userinfo, "name:se@cret");
  EXPECT_EQ(all.query, "token=1?2&b=@");
  EXPECT_EQ(origin_of("https://host:1/a?b"), "https://host:1");
  EXPECT_EQ(origin_of("https://host?b"), "https://host");
  EXPECT_EQ(origin_of("HTTPS://Host:443/A"), "https://host");
  EXPECT_EQ(origin_of("http://host:443/a"), "http://host:443");
  EXPECT_EQ(origin_of("nothing"), "");
  EXPECT_EQ(encoded_path("/a b/c+d=e%20f"), "/a%20b/c+d=e%20f");
  EXPECT_EQ(encoded_path("/50%/\xc3\xa4?#"), "/50%25/%C3%A4%3F%23");
}

TEST(Address, NothingSecretIsShownOfAnyTextNorOfWhatIsRefused) {
  for (const char* open :
       {"s3://bucket/a b", "https://host/a@b", "no address", "http://host:80/a@b", "http://[::1]:80/a@b"}) {
    EXPECT_EQ(shown_address(open), open);
  }
  EXPECT_EQ(shown_address("https://key:word@host?sig=1#x"), "https://host");
  EXPECT_EQ(shown_address("https://host/x#https://key:word@other"), "https://host/x");
  for (const std::string url : {"http://user:pa/ss@host/x", "http://user:pa?ss@host/x", "http://user:pa#ss@host/x"}) {
    EXPECT_EQ(shown_address(url), "http://…");
  }
  for (const std::string url : {"https:///path", "https://", "https://key:word@/path", "https://key:word@host/a b",
                                "https://key:word@host/a#word", "https://key:word@host/a\r\nword: 1"}) {
    const std::string said = message_of([&] { parse_address(url); }, ErrorKind::InvalidArgument);
    EXPECT_EQ(said.find("word@"), std::string::npos) << said;
  }
}

TEST(Address, WhatAServerTellsIsShownWithoutWhatItWasTold) {
  const std::string address =
      "https://name:Hunter2%2f9@host/a?X-Amz-Credential=AKIAEXAMPLE%2F2026%2Fs3&X-Amz-Signature=0123456789ab&short=200";
  for (const char* secret :
       {"Hunter2%2f9", "Hunter2/9", "AKIAEXAMPLE%2F2026%2Fs3", "AKIAEXAMPLE/2026/s3", "AKIAEXAMPLE", "0123456789ab"}) {
    EXPECT_EQ(without_secrets_of(fmt::format("its ETag was \"{0}\" and is {0}", secret), address),
              "its ETag was \"…\" and is …");
  }
  EXPECT_EQ(without_secrets_of("status 200, name", address), "status 200, name") << "too short to be told from words";
  EXPECT_EQ(without_secrets_of("anything", ""), "anything");
  EXPECT_EQ(without("aaaa", "aa"), "……");
  EXPECT_EQ(without("aaaa", ""), "aaaa");
}

}  // namespace
}  // namespace penstock::testing
