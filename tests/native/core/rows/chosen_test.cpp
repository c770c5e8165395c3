#include "core/rows/chosen.h"

#include "core/rows/source.h"
#include "core/rows/sub_view.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace penstock {
namespace {

template <typename Call>
std::string message_of(Call&& call) {
  return testing::message_of(call, ErrorKind::InvalidArgument);
}

using Numbers = std::vector<std::uint64_t>;

Chosen chosen_by(const std::vector<bool>& bits) {
  std::vector<std::uint64_t> words(words_for(bits.size()));
  for (std::size_t i = 0; i < bits.size(); ++i) words[i / 64] |= std::uint64_t{bits[i]} << i % 64;
  return {std::move(words), bits.size()};
}

void expect_numbers(const std::vector<bool>& bits) {
  const Chosen chosen = chosen_by(bits);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    ASSERT_EQ(chosen.before(i), count);
    ASSERT_EQ(chosen.has(i), bits[i]);
    if (!bits[i]) continue;
    ASSERT_EQ(chosen.at(count), i);
    ++count;
  }
  EXPECT_EQ(chosen.count(), count);
  EXPECT_EQ(chosen.before(bits.size()), count);
}

TEST(Chosen, TheIthOneIsThatOfTheListWhateverTheSizeAndShare) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {0, 1, 63, 64, 65, 511, 512, 513, 1000, 33'000, 70'001}) {
    for (const double share : {0.0, 0.0005, 0.1, 0.5, 0.97, 1.0}) {
      SCOPED_TRACE(fmt::format("{} of {}", share, size));
      std::vector<bool> bits(size);
      for (std::size_t i = 0; i < size; ++i) bits[i] = std::uniform_real_distribution()(random) < share;
      expect_numbers(bits);
    }
  }
  std::vector<bool> ends(1'000'000);  // far apart
  ends.front() = ends.back() = true;
  expect_numbers(ends);
  std::vector<bool> lumps(300'000);
  for (std::size_t i = 0; i < 600; ++i) lumps[i] = lumps[200'000 + i] = true;
  expect_numbers(lumps);
}

TEST(Chosen, WordsThatDoNotFitTheSizeAreRefusedAndTheDigestTellsSizeAndBits) {
  EXPECT_NE(message_of([] { Chosen({1, 2}, 64); }).find("2 words of bits do not say which of 64"), std::string::npos);
  EXPECT_NE(message_of([] { Chosen({}, 1); }).find("0 words"), std::string::npos);
  EXPECT_NE(message_of([] { Chosen({8}, 3); }).find("1 words"), std::string::npos);
  EXPECT_EQ(Chosen({5}, 3).digest(), Chosen({5}, 3).digest());
  EXPECT_NE(Chosen({5}, 3).digest(), Chosen({5}, 4).digest());
  EXPECT_NE(Chosen({5}, 3).digest(), Chosen({4}, 3).digest());
}

class Ten final : public Source {
 public:
  Ten() {
    info_.size = 10;
    info_.identity.view = R"({"kind":"ten"})";
  }
  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& /*row*/, unsigned /*round*/, Parts /*wanted*/, Reads& /*out*/) const override { return false; }
  void spans(const Row& /*row*/, SpanTable& /*out*/) const override {}

 private:
  SourceInfo info_;
};

Numbers numbers_of(const Source& view) {
  Numbers numbers;
  for (std::uint64_t i = 0; i < view.info().size; ++i) numbers.push_back(view.base_index(i));
  return numbers;
}

TEST(Chosen, APartOfAViewHasThoseOfTheWholeViewThatAreInIt) {
  const auto ten = std::make_shared<Ten>();
  const auto some =
      std::make_shared<const Chosen>(chosen_by({true, false, true, true, false, false, true, false, true, true}));
  const auto view = std::make_shared<SubView>(ten, some, R"({"condition":"c"})");
  EXPECT_EQ(numbers_of(*view), (Numbers{0, 2, 3, 6, 8, 9}));
  EXPECT_EQ(view->info().identity.view, R"({"kind":"ten","where":{"condition":"c"}})");
  const auto falling = std::make_shared<SubView>(ten, SliceRange{8, -2, 4});  // 8 6 4 2
  const auto part = std::make_shared<const Chosen>(chosen_of_part(*falling, *some));
  const SubView inner(falling, part, "{}");
  EXPECT_EQ(numbers_of(inner), (Numbers{8, 6, 2}));
  EXPECT_EQ(inner.info().identity.view, R"({"kind":"ten","slice":{"count":4,"first":8,"step":-2},"where2":{}})");
  EXPECT_NE(message_of([&] { SubView(falling, some, "{}"); }).find("a choice among 10 observations, the view has 4"),
            std::string::npos);
  EXPECT_NE(message_of([&] { chosen_of_part(*ten, Chosen({1}, 4)); }).find("observation 4 of a view of which 4"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock
