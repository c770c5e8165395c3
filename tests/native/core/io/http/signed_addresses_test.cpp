#include "core/io/http/signed_addresses.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace penstock::testing {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

SignedAddresses made() {
  return SignedAddresses("with the keys of the test");
}

TEST(SignedAddresses, AnAddressIsAskedForOnceAndGivenToAllWhoWait) {
  SignedAddresses addresses = made();
  int called = 0;
  const auto later = [&] { ++called; };
  EXPECT_FALSE(addresses.of("a", later));
  EXPECT_FALSE(addresses.of("a", later));
  EXPECT_FALSE(addresses.of("b", later));
  EXPECT_EQ(addresses.take(10, milliseconds(0)), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(addresses.take(10, milliseconds(0)).empty());
  addresses.give({{"a", "https://a?1"}}, hours(1));
  EXPECT_EQ(called, 2);
  EXPECT_EQ(addresses.of("a", later), "https://a?1");
  EXPECT_FALSE(addresses.of("b", later));
}

TEST(SignedAddresses, AnAddressIsSignedAnewAtHalfItsTimeAndUsedMeanwhile) {
  SignedAddresses addresses = made();
  EXPECT_FALSE(addresses.of("a", [] {}));
  addresses.take(10, milliseconds(0));
  addresses.give({{"a", "https://a?1"}}, hours(1));
  EXPECT_EQ(addresses.of("a", [] {}), "https://a?1");
  EXPECT_TRUE(addresses.take(10, milliseconds(0)).empty());
  addresses.give({{"a", "https://a?1"}}, milliseconds(300));
  std::vector<std::string> asked;
  while (asked.empty()) {
    const auto now = addresses.of("a", [] {});
    EXPECT_TRUE(!now || now == "https://a?1");
    asked = addresses.take(10, milliseconds(10));
  }
  EXPECT_EQ(asked, std::vector<std::string>{"a"});
  while (addresses.of("a", [] {})) std::this_thread::sleep_for(milliseconds(10));  // until its time is over
}

TEST(SignedAddresses, ARefusedOneIsSignedAnew) {
  SignedAddresses addresses = made();
  EXPECT_FALSE(addresses.of("a", [] {}));
  addresses.take(10, milliseconds(0));
  addresses.give({{"a", "https://a?1"}}, hours(1));
  EXPECT_TRUE(addresses.renew("a"));
  EXPECT_FALSE(addresses.of("a", [] {}));
  EXPECT_EQ(addresses.take(10, milliseconds(0)), std::vector<std::string>{"a"});
}

TEST(SignedAddresses, AnErrorReachesWhoWaits) {
  SignedAddresses addresses = made();
  int called = 0;
  EXPECT_FALSE(addresses.of("a", [&] { ++called; }));
  addresses.refuse(addresses.take(10, milliseconds(0)), Error(ErrorKind::IoError, "no keys"));
  EXPECT_EQ(called, 1);
  EXPECT_THROW(addresses.of("a", [] {}), Error);
}

TEST(SignedAddresses, WhoSignsIsWokenAndStops) {
  SignedAddresses addresses = made();
  std::thread signer([&] {
    while (!addresses.is_stopped()) {
      for (const std::string& path : addresses.take(10, hours(1)))
        addresses.give({{path, "https://" + path}}, hours(1));
    }
  });
  std::atomic<bool> is_there{false};
  while (!addresses.of("a", [&] { is_there = true; })) {
    while (!is_there) std::this_thread::yield();
  }
  addresses.stop();
  signer.join();
  EXPECT_THROW(addresses.of("b", [] {}), Error);
}

}  // namespace
}  // namespace penstock::testing
