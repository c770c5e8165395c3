#include "core/rows/cast.h"

#include "core/rows/cast_runs.h"
#include "tests/native/message_of.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>

namespace penstock::testing {
namespace {

Leaf leaf_of(char kind, std::uint32_t bytes, std::uint64_t offset = 0) {
  Leaf leaf;
  leaf.name = "token";
  leaf.kind = kind;
  leaf.item_bytes = bytes;
  leaf.offset_bytes = offset;
  return leaf;
}

template <typename T>
void put(std::vector<std::byte>& bytes, std::uint64_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <typename T>
std::vector<T> cast(const Leaf& leaf, const std::vector<std::byte>& records, std::uint64_t stride, std::uint64_t count,
                    ScalarType type) {
  std::vector<T> out(count * leaf.count());
  cast_leaf(leaf, records.data(), stride, count, type, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

/// "" if nothing is thrown.
std::string refusal(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    return error.what();
  }
}

template <typename T>
std::string cast_refusal(const Leaf& leaf, const std::vector<std::byte>& records, std::uint64_t stride,
                         std::uint64_t count, ScalarType type) {
  return refusal([&] { cast<T>(leaf, records, stride, count, type); });
}

template <typename T>
constexpr ScalarType kTypeOf = {std::is_floating_point_v<T> ? 'f'
                                : std::is_signed_v<T>       ? 'i'
                                                            : 'u',
                                sizeof(T)};

/// Values of From, edges and random ones, at a stride and an alignment, against static_cast; those of which some do not
/// fit To must be refused.
template <typename From, typename To>
void check_pair() {
  std::mt19937_64 random(1);
  const From edges[] = {From(0), From(1), std::numeric_limits<From>::max(), std::numeric_limits<From>::lowest(),
                        static_cast<From>(std::numeric_limits<To>::max())};
  for (const std::uint64_t stride : {sizeof(From), sizeof(From) + 3, std::size_t{16}}) {
    for (const std::uint64_t count : {0, 1, 2, 15, 16, 17, 100}) {
      std::vector<std::byte> records(1 + count * stride);
      std::vector<From> values(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        values[i] = random() % 4 == 0 ? edges[random() % 5] : static_cast<From>(random() % 100);
        put(records, 1 + i * stride, values[i]);
      }
      bool fits = true;
      if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
        for (const From value : values) fits = fits && std::in_range<To>(value);
      }
      const Leaf leaf = leaf_of(kTypeOf<From>.kind, sizeof(From), 1);
      if constexpr (sizeof(From) == sizeof(To) && std::is_integral_v<From> == std::is_integral_v<To>) {
        ASSERT_TRUE(has_same_bytes(leaf, kTypeOf<To>));
        if (stride == sizeof(From)) {
          const Leaf whole = leaf_of(kTypeOf<From>.kind, sizeof(From));
          const std::string said = refusal([&] { check_values(whole, records.data() + 1, count, kTypeOf<To>); });
          ASSERT_EQ(said, cast_refusal<To>(leaf, records, stride, count, kTypeOf<To>));
          ASSERT_EQ(said.empty(), fits);
        }
      } else {
        ASSERT_FALSE(has_same_bytes(leaf, kTypeOf<To>));
      }
      if (!fits) {
        EXPECT_NE(cast_refusal<To>(leaf, records, stride, count, kTypeOf<To>), "");
        continue;
      }
      const auto out = cast<To>(leaf, records, stride, count, kTypeOf<To>);
      for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(out[i], static_cast<To>(values[i])) << i;
    }
  }
}

template <typename From, typename... To>
void check_pairs() {
  (check_pair<From, To>(), ...);
}

template <typename... From>
void check_integers() {
  (check_pairs<From, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
               std::uint64_t, float, double>(),
   ...);
}

// The check looks at many values at once: one that does not fit is seen wherever it lies.
template <typename From>
void check_each_place() {
  constexpr std::uint64_t kCount = 150;
  const Leaf leaf = leaf_of('u', sizeof(From));
  const ScalarType type{'i', sizeof(From)};
  std::vector<From> values(kCount, std::numeric_limits<From>::max() / 2);
  const auto* records = reinterpret_cast<const std::byte*>(values.data());
  for (std::uint64_t count = 0; count <= kCount; ++count) check_values(leaf, records, count, type);
  for (std::uint64_t place = 0; place < kCount; ++place) {
    ++values[place];
    EXPECT_NE(refusal([&] { check_values(leaf, records, kCount, type); }), "") << place;
    EXPECT_EQ(refusal([&] { check_values(leaf, records, place, type); }), "") << place;
    --values[place];
  }
}

TEST(Cast, AValueThatDoesNotFitIsSeenWhereverItLies) {
  check_each_place<std::uint8_t>();
  check_each_place<std::uint16_t>();
  check_each_place<std::uint32_t>();
  check_each_place<std::uint64_t>();
}

TEST(Cast, EveryIntegerTypeBecomesEveryOtherOrIsRefusedByValue) {
  check_integers<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t, std::int16_t, std::int32_t,
                 std::int64_t>();
  check_pair<float, double>();
}

TEST(Cast, OneValueTooLargeAmongManyIsFoundAndNamed) {
  std::vector<std::byte> records(4 * 1'000);
  for (std::uint32_t i = 0; i < 1'000; ++i) put(records, 4 * i, i);
  put(records, 4 * 777, std::uint32_t{4'294'967'295});
  EXPECT_EQ(
      cast_refusal<std::int32_t>(leaf_of('u', 4), records, 4, 1'000, {'i', 4}),
      "field token: value 4,294,967,295 does not fit int32 (record 777 of its row); use dtype={'token': 'int64'}");
  EXPECT_EQ(cast_refusal<std::int32_t>(leaf_of('u', 4), records, 4, 777, {'i', 4}), "");
  std::vector<std::byte> wide(16);
  put(wide, 8, UINT64_MAX);
  EXPECT_EQ(cast_refusal<std::int64_t>(leaf_of('u', 8), wide, 8, 2, {'i', 8}),
            "field token: value 18,446,744,073,709,551,615 does not fit int64 (record 1 of its row); "
            "use dtype={'token': 'uint64'}");
  put(wide, 8, std::int64_t{-5});
  EXPECT_EQ(cast_refusal<std::uint8_t>(leaf_of('i', 8), wide, 8, 2, {'u', 1}),
            "field token: value -5 does not fit uint8 (record 1 of its row); use dtype={'token': 'int64'}");
}

TEST(Cast, SubArraysAddTrailingAxesInOrder) {
  // [["a","u1"],["s",[["x","<u2",[2]],["y","<f4"]],[3]]]: x repeats 2 times in each of 3 structs of 8 bytes
  const Schema schema = Schema::parse(R"([["a","|u1"],["s",[["x","<u2",[2]],["y","<f4"]],[3]]])");
  const Leaf& x = schema.leaves()[static_cast<std::size_t>(schema.find("s.x"))];
  const Leaf& y = schema.leaves()[static_cast<std::size_t>(schema.find("s.y"))];
  ASSERT_EQ(schema.record_bytes(), 25U);
  ASSERT_EQ(x.dims, (std::vector<std::uint64_t>{3, 2}));
  std::vector<std::byte> records(4 * 25);
  for (std::uint64_t i = 0; i < 4 * 3; ++i) {  // structs, three a record
    const std::uint64_t at = i / 3 * 25 + 1 + i % 3 * 8;
    for (std::uint64_t k = 0; k < 2; ++k)
      put(records, at + k * 2, static_cast<std::uint16_t>(i / 3 * 100 + i % 3 * 10 + k));
    put(records, at + 4, static_cast<float>(i / 3 * 10 + i % 3) / 2);
  }
  const auto xs = cast<std::int64_t>(x, records, 25, 4, {'i', 8});
  const auto ys = cast<float>(y, records, 25, 4, {'f', 4});
  for (std::uint64_t i = 0; i < 4 * 3; ++i) EXPECT_EQ(ys[i], static_cast<float>(i / 3 * 10 + i % 3) / 2);
  for (std::uint64_t i = 0; i < 4 * 6; ++i) {
    EXPECT_EQ(xs[i], static_cast<std::int64_t>(i / 6 * 100 + i % 6 / 2 * 10 + i % 2));
  }
  EXPECT_EQ(cast_refusal<std::int8_t>(x, records, 25, 4, {'i', 1}),
            "field s.x: value 200 does not fit int8 (record 2 of its row); use dtype={'s.x': 'int64'}");
}

TEST(Cast, HalvesBecomeTheFloatsThatTheyAre) {
  std::vector<std::byte> records(2 * 65'536);
  for (std::uint32_t bits = 0; bits < 65'536; ++bits) put(records, 2 * bits, static_cast<std::uint16_t>(bits));
  const auto floats = cast<float>(leaf_of('f', 2), records, 2, 65'536, {'f', 4});
  const auto doubles = cast<double>(leaf_of('f', 2), records, 2, 65'536, {'f', 8});
  for (std::uint32_t bits = 0; bits < 65'536; ++bits) {
    const int exponent = static_cast<int>((bits >> 10) & 31);
    const double fraction = bits & 1'023;
    double expected = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1'024 + fraction, exponent - 25);
    if (exponent == 31) expected = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
    if (bits >= 0x8000) expected = -expected;
    ASSERT_EQ(std::isnan(floats[bits]) && std::isnan(doubles[bits]), std::isnan(expected));
    if (std::isnan(expected)) continue;
    ASSERT_TRUE(floats[bits] == expected && doubles[bits] == expected) << bits;
    ASSERT_EQ(std::signbit(floats[bits]), bits >= 0x8000);
  }
}

TEST(Cast, BoolsBytesAndComplexNumbersAreCopied) {
  std::vector<std::byte> records(21 * 300);
  std::mt19937 random(3);
  for (std::byte& byte : records) byte = static_cast<std::byte>(random());
  for (const ScalarType type : {ScalarType{'b', 1}, {'c', 8}, {'c', 16}, {'S', 5}, {'V', 11}, {'f', 2}, {'u', 8}}) {
    for (const std::uint64_t stride : {std::uint64_t{type.bytes}, std::uint64_t{21}}) {
      std::vector<std::byte> out(300 * type.bytes);
      cast_leaf(leaf_of(type.kind, type.bytes), records.data(), stride, 300, type, out.data());
      for (std::uint64_t i = 0; i < 300; ++i) {
        ASSERT_EQ(std::memcmp(out.data() + i * type.bytes, records.data() + i * stride, type.bytes), 0) << type.str();
      }
    }
  }
  const auto flags = cast<std::int64_t>(leaf_of('b', 1), {std::byte{0}, std::byte{1}, std::byte{2}}, 1, 3, {'i', 8});
  EXPECT_EQ(flags, (std::vector<std::int64_t>{0, 1, 1}));
}

TEST(Cast, CastsThatLoseWhatAFieldIsAreRefused) {
  const auto refused = [](const std::string& from, const std::string& to) {
    const ScalarType type = ScalarType::parse(from);
    return refusal([&] { check_cast(leaf_of(type.kind, type.bytes), ScalarType::parse(to)); });
  };
  const std::multimap<std::string, std::string> lossy{{"f8", "u1"},  {"i8", "|b1"}, {"f4", "f2"},
                                                      {"i4", "f2"},  {"|S4", "i4"}, {"|S4", "|S5"},
                                                      {"i4", "|V4"}, {"c8", "f4"},  {"c8", "c16"}};
  for (const auto& [from, to] : lossy) EXPECT_NE(refused(from, to), "") << from << " to " << to;
  EXPECT_EQ(refused("f4", "i8"), "field token: float32 cannot become int64");
  for (const auto& [from, to] : {std::pair{"f8", "f4"}, {"f2", "f4"}, {"u8", "f4"}}) EXPECT_EQ(refused(from, to), "");
}

TEST(Cast, TypesAreReadAndWrittenAsNumpyDoes) {
  for (const char* text : {"<i8", "|u1", "|b1", "<f2", "<c16", "|S16", "|V3"}) {
    EXPECT_EQ(ScalarType::parse(text).str(), text);
  }
  const std::map<std::string, std::string> names{{"int32", "<i4"},     {"uint64", "<u8"}, {"float16", "<f2"},
                                                 {"complex64", "<c8"}, {"bool", "|b1"},   {"u2", "<u2"}};
  for (const auto& [name, text] : names) EXPECT_EQ(ScalarType::parse(name).str(), text);
  for (const char* text : {"", "<", "i", ">i4", "i3", "int", "int12", "int7", "f16", "O8", "float128x", "i99999999999",
                           "i-4", "S0", "u4 ", "bool8", "b2"}) {
    EXPECT_NE(refusal([&] { static_cast<void>(ScalarType::parse(text)); }), "") << text;
  }
}

// One form equals the other, value by value, for every cast there is, dense and strided, fitting and not.
TEST(Cast, EveryFormOfACastGivesTheSame) {
#ifndef __x86_64__
  GTEST_SKIP() << "there is one form";
#else
  if (__builtin_cpu_supports("avx2") == 0) GTEST_SKIP() << "no AVX2 here";
  const std::vector<ScalarType> types{{'b', 1}, {'i', 1}, {'i', 2}, {'i', 4}, {'i', 8}, {'u', 1},
                                      {'u', 2}, {'u', 4}, {'u', 8}, {'f', 2}, {'f', 4}, {'f', 8}};
  constexpr std::uint64_t kCount = 1'037;
  std::mt19937_64 random(1);
  std::vector<std::byte> any(kCount * 11);
  for (std::byte& byte : any) byte = static_cast<std::byte>(random());
  std::vector<std::byte> small(any.size());  // integers of one byte each
  for (std::size_t i = 0; i < small.size(); i += 8) small[i] = static_cast<std::byte>(random() % 128);
  for (const ScalarType from : types) {
    for (const ScalarType to : types) {
      const CastRun plain = find_cast_run_generic(from, to);
      const CastRun fast = find_cast_run_avx2(from, to);
      ASSERT_EQ(plain == nullptr, fast == nullptr);
      if (plain == nullptr) continue;
      for (const std::uint64_t stride : {std::uint64_t{from.bytes}, std::uint64_t{8}, std::uint64_t{11}}) {
        // Floats that do not fit another type are undefined there, so they get sensible values alone.
        for (const std::vector<std::byte>* in : {&small, &any}) {
          if (from.kind == 'f' && in == &any) continue;
          std::vector<std::byte> a(kCount * to.bytes);
          std::vector<std::byte> b(kCount * to.bytes);
          ASSERT_EQ(plain(in->data(), stride, kCount, a.data(), to.bytes),
                    fast(in->data(), stride, kCount, b.data(), to.bytes));
          ASSERT_EQ(a, b) << from.str() << " to " << to.str() << ", stride " << stride;
        }
      }
    }
  }
#endif
}

}  // namespace
}  // namespace penstock::testing
