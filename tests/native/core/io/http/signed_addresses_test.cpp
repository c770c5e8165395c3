#include "core/io/http/signed_addresses.h"

#include <gtest/gtest.h>

#include <thread>

namespace penstock::testing {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using Signed = std::vector<std::string>;

class SignedAddressesTest : public ::testing::Test {
 protected:
  std::optional<std::string> of(const std::string& path) {
    return addresses_.of(path, [&] { ++called_; });
  }
  Signed take(milliseconds patience = {}) { return addresses_.take(10, patience); }

  SignedAddresses addresses_{"with the keys of the test"};
  std::atomic<int> called_{0};
};

TEST_F(SignedAddressesTest, AnAddressOrItsErrorIsAskedForOnceGivenToAllWhoWaitAndSignedAnewWhereItIsRefused) {
  EXPECT_FALSE(of("a"));
  EXPECT_FALSE(of("a"));
  EXPECT_FALSE(of("b"));
  EXPECT_EQ(take(), (Signed{"a", "b"}));
  EXPECT_EQ(take(), Signed());
  addresses_.give({{"a", "https://a?1"}}, hours(1));
  EXPECT_EQ(called_, 2);
  EXPECT_EQ(of("a"), "https://a?1");
  EXPECT_FALSE(of("b"));
  EXPECT_EQ(take(), Signed());
  EXPECT_TRUE(addresses_.renew("a"));
  EXPECT_FALSE(of("a"));
  EXPECT_EQ(take(), Signed{"a"});
  addresses_.refuse({"a"}, Error(ErrorKind::IoError, "no keys"));
  EXPECT_EQ(called_, 3);
  EXPECT_THROW(of("a"), Error);
}

TEST_F(SignedAddressesTest, AnAddressIsSignedAnewAtHalfItsTimeAndUsedMeanwhile) {
  addresses_.give({{"a", "https://a?1"}}, milliseconds(300));
  Signed asked;
  while (asked.empty()) {
    const auto now = of("a");
    EXPECT_TRUE(!now || now == "https://a?1");
    asked = take(milliseconds(10));
  }
  EXPECT_EQ(asked, Signed{"a"});
  while (of("a")) std::this_thread::sleep_for(milliseconds(10));  // until its time is over
}

TEST_F(SignedAddressesTest, WhoSignsIsWokenAndStops) {
  std::thread signer([&] {
    while (!addresses_.is_stopped()) {
      for (const std::string& path : take(hours(1))) addresses_.give({{path, "https://" + path}}, hours(1));
    }
  });
  while (!of("a")) {
    while (called_ == 0) std::this_thread::yield();
  }
  addresses_.stop();
  signer.join();
  EXPECT_THROW(of("b"), Error);
}

}  // namespace
}  // namespace penstock::testing
