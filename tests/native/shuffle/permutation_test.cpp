// That it is the permutation of its definition, for any size and key: tests/python/load/test_permutation.py.
#include "shuffle/permutation.h"

#include "core/base/error.h"
#include "order_checks.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace penstock::shuffle {
namespace {

using Values = std::vector<std::uint64_t>;
constexpr std::uint64_t one = 1;

Values images(const Permutation& permutation, const Values& in) {
  Values out(in.size());
  permutation(in, out);
  return out;
}

Values first(std::uint64_t count) {
  Values values(count);
  std::iota(values.begin(), values.end(), std::uint64_t{0});
  return values;
}

void expect_bijection(std::uint64_t n) {
  const Permutation permutation(n, 0xfedcba9876543210U + n, 2);
  const Values in = first(n);
  Values out = images(permutation, in);
  Values back(n);
  permutation.inverse(out, back);
  ASSERT_EQ(back, in) << "n = " << n;
  std::sort(out.begin(), out.end());
  ASSERT_EQ(out, in) << "n = " << n;
}

TEST(Permutation, IsABijectionInFullAroundEveryPowerOfTwo) {
  for (std::uint64_t n = 1; n <= 130; ++n) expect_bijection(n);
  for (unsigned k = 7; k <= 18; ++k) {
    for (const std::uint64_t n : {(one << k) - 1, one << k, (one << k) + 1}) expect_bijection(n);
  }
}

TEST(Permutation, GivesTheGoldenVectors) {
  const nlohmann::json cases = golden();
  ASSERT_EQ(cases.at("algorithm").get<std::uint64_t>(), kAlgorithm);
  std::size_t values = 0;
  for (const auto& one_case : cases.at("permutation")) {
    const Permutation permutation(one_case.at("n"), one_case.at("seed"), one_case.at("epoch"));
    for (const auto& pair : one_case.at("pairs")) {
      const std::uint64_t index = pair.at(0);
      const std::uint64_t image = pair.at(1);
      EXPECT_EQ(permutation(index), image) << one_case.dump() << " at " << index;
      EXPECT_EQ(permutation.inverse(image), index) << one_case.dump() << " at " << index;
      EXPECT_EQ(images(permutation, {index}), Values{image}) << one_case.dump() << " at " << index;
      ++values;
    }
  }
  EXPECT_GE(values, 64U);
}

// Where a quotient by floating point goes wrong first: beside multiples of b, and at the largest sizes.
Values delicate_indices(std::uint64_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Sides sides = Sides::of(n);
  Values in;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t multiple =
        i < 1000 ? sides.a - 1 - std::min<std::uint64_t>(i, sides.a - 1) : random() % sides.a;
    for (std::uint64_t delta = 0; delta < 3; ++delta) in.push_back(multiple * sides.b + delta - 1);
    in.push_back(random() % n);
  }
  std::erase_if(in, [n](std::uint64_t index) { return index >= n; });
  return in;
}

void expect_forms_equal_scalar(std::uint64_t n) {
  const Permutation permutation(n, n * 3, 5);
  const Values in = delicate_indices(n, n);
  for (const Form form : {Form::Generic, Form::Avx2, Form::Avx512}) {
    if (!supported(form)) continue;
    Values out(in.size());
    Values back(in.size());
    permutation(in, out, form);
    permutation.inverse(in, back, form);
    for (std::size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(out[i], permutation(in[i])) << name_of(form) << ", n = " << n << ", index " << in[i];
      ASSERT_EQ(back[i], permutation.inverse(in[i])) << name_of(form) << ", n = " << n << ", value " << in[i];
    }
  }
}

TEST(Permutation, EveryFormEqualsTheScalarOneBitForBit) {
  const std::uint64_t side = (one << 26) - 2;
  // At sides such as 98, 206 and 394 the floating quotient of a multiple falls short of the integer.
  Values sizes = {1, 64, 65, 66, 101, 1000, 98 * 98, 206 * 206, 394 * 394, side * side, side * side - 1};
  for (const std::uint64_t size :
       {side * side + 1, one << 20, (one << 28) + 1, (one << 32) - 1, (one << 40) + 7, (one << 52) - 1, one << 52}) {
    sizes.push_back(size);
  }
  std::mt19937_64 random(3);
  for (unsigned i = 0; i < 46; ++i) sizes.push_back(65 + random() % (one << (7 + i)) % (kMaxSize - 65));
  for (const std::uint64_t n : sizes) {
    expect_forms_equal_scalar(n);
    if (HasFatalFailure()) return;
  }
}

TEST(Permutation, BatchesOfEveryLengthAndInPlaceAreTheSame) {
  const Permutation permutation(101, 4);  // one pass in 14 ends outside and walks
  for (const Form form : {Form::Generic, Form::Avx2, Form::Avx512}) {
    if (!supported(form)) {
      Values values = {1};
      EXPECT_THROW(permutation(values, values, form), Error) << name_of(form);
      continue;
    }
    for (std::size_t count = 0; count <= 600; count += count < 70 ? 1 : 53) {
      Values values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = i % 101;
      Values expected = values;
      for (std::uint64_t& value : expected) value = permutation(value);
      permutation(values, values, form);
      ASSERT_EQ(values, expected) << name_of(form) << ", " << count << " indices";
    }
  }
  EXPECT_TRUE(supported(best_form()));
  EXPECT_TRUE(supported(Form::Generic));
}

TEST(Permutation, SizesAndIndicesThatCannotBeAreRefusedAndNothingIsWritten) {
  EXPECT_THROW(Permutation(0, 1), Error);
  EXPECT_NO_THROW(Permutation(one << 52, 1));
  testing::expect_error([] { Permutation((one << 52) + 1, 1); }, ErrorKind::InvalidArgument,
                        "4,503,599,627,370,497 elements: wanted at most 2^52 = 4,503,599,627,370,496");
  for (const std::uint64_t n : {std::uint64_t{10}, std::uint64_t{1000}}) {
    const Permutation permutation(n, 1);
    EXPECT_THROW((void)permutation(n), Error);
    EXPECT_THROW((void)permutation.inverse(n), Error);
    Values in(700, 3);
    in[600] = n;
    Values out(700, 12345);
    EXPECT_THROW(permutation(in, out), Error);
    EXPECT_THROW(permutation.inverse(in, out), Error);
    EXPECT_EQ(out, Values(700, 12345));
    Values shorter(699);
    in[600] = 3;
    EXPECT_THROW(permutation(in, shorter), Error);
  }
}

}  // namespace
}  // namespace penstock::shuffle
