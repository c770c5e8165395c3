#include "text/unseen.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::text {
namespace {

using Numbers = std::vector<std::uint64_t>;

std::vector<SkipSeen> all_ways() {
  std::vector<SkipSeen> ways{skip_seen_generic};
  if (best_skip_seen() != skip_seen_generic) ways.push_back(best_skip_seen());
  return ways;
}

// One byte, one character and one token after the other.
class Plain {
 public:
  explicit Plain(const std::vector<std::string>& tokens) : tokens_(tokens.begin(), tokens.end()) {}

  Numbers scan(std::string_view text, const Numbers& ends) {
    Numbers found;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const auto byte = static_cast<unsigned char>(text[at]);
      bool is_new = false;
      if (byte < 0x80 || byte >= 0xc0) {
        const std::size_t size = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
        is_new = characters_.emplace(text.substr(at, size)).second;
      }
      std::uint64_t end = 0;
      for (const std::uint64_t each : ends) {
        end = each;
        if (each > at) break;
      }
      is_new |= std::erase_if(tokens_, [&](const std::string& token) {
                  return at + token.size() <= end && text.substr(at, token.size()) == token;
                }) > 0;
      if (is_new) found.push_back(at);
    }
    return found;
  }

 private:
  std::set<std::string> tokens_;
  std::set<std::string> characters_;
};

TEST(Unseen, FindsEachCharacterOnce) {
  for (const SkipSeen skip : all_ways()) {
    Unseen unseen({}, skip);
    EXPECT_EQ(unseen.scan("abca\xc3\xa9"
                          "b\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                          Numbers{16}),
              (Numbers{0, 1, 2, 4, 9, 12}));
    EXPECT_EQ(unseen.scan("\xf0\x9f\x98\x81"
                          "abc\xc3\xa8\n",
                          Numbers{10}),
              (Numbers{0, 7, 9}));
    EXPECT_TRUE(unseen.scan("", Numbers{}).empty());
  }
}

TEST(Unseen, FindsTokensWithinDocuments) {
  for (const SkipSeen skip : all_ways()) {
    Unseen unseen({"<|a|>", "<|ab|>", "x", "\xe2\x82\xac\xe2\x82\xac", "<|a"}, skip);
    static_cast<void>(unseen.scan("<|ab>", Numbers{5}));  // "<|a" too
    EXPECT_EQ(unseen.scan("ba<|a|>", Numbers{5, 7}), Numbers{});
    EXPECT_EQ(unseen.scan("ba<|a|><|a|>", Numbers{12}), Numbers{2});
    EXPECT_EQ(unseen.scan("bax<|ab|>x", Numbers{10}), (Numbers{2, 3}));
    EXPECT_EQ(unseen.scan("\xe2\x82\xac\xe2\x82\xac", Numbers{3, 6}), Numbers{0});
    EXPECT_EQ(unseen.scan("a\xe2\x82\xac\xe2\x82\xac", Numbers{7}), Numbers{1});
  }
}

TEST(Unseen, FindsTheSameAsTheSearchOfEveryPlace) {
  const std::vector<std::string> tokens{"  ",
                                        "    ",
                                        "        ",
                                        "\n\n\n",
                                        "ab",
                                        "a",
                                        "aba",
                                        "<|x|>",
                                        "<|y|",
                                        "|",
                                        "\xd0\xb0",
                                        "\x01",
                                        "e\xd0",
                                        "\xf0\x9f\x98\x80"
                                        "b",
                                        "zzzzzzzzz"};
  const std::vector<std::string> pieces{
      " ", "a", "b", "ab", "<|", "x|>", "\n", "\xd0\xb0", "\xd0\xb1", "\xe4\xb8\xad", "\xf0\x9f\x98\x80", "z", "e"};
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    for (const SkipSeen skip : all_ways()) {
      Unseen unseen(tokens, skip);
      Plain plain(tokens);
      for (int call = 0; call < 4; ++call) {
        std::string text;
        Numbers ends;
        for (std::uint32_t documents = random() % 4; documents > 0; --documents) {
          for (std::uint32_t count = random() % 120; count > 0; --count) text += pieces[random() % pieces.size()];
          for (std::uint32_t count = random() % 4; count > 0; --count) text += static_cast<char>(random() % 128);
          ends.push_back(text.size());
        }
        const std::vector<char> tight(text.begin(), text.end());
        EXPECT_EQ(unseen.scan({tight.data(), tight.size()}, ends), plain.scan(text, ends));
      }
    }
  }
}

TEST(Unseen, FindsACharacterAtEveryPlaceOfABlock) {
  for (const SkipSeen skip : all_ways()) {
    for (const std::string each : {"b", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "ax"}) {
      for (std::size_t at = 0; at < 100; ++at) {
        Unseen unseen({"ax"}, skip);
        static_cast<void>(unseen.scan(std::string(1, 'a') + "x", Numbers{1, 2}));
        const std::string text = std::string(at, 'a') + each + std::string(70, 'a');
        EXPECT_EQ(unseen.scan(text, Numbers{text.size()}), Numbers{at}) << each << at;
      }
    }
  }
}

TEST(Unseen, ReadsNothingBehindTextThatIsNoUtf8) {
  for (const SkipSeen skip : all_ways()) {
    for (std::size_t size = 1; size < 80; ++size) {
      Unseen unseen({"\xff\xff"}, skip);
      const std::vector<char> text(size, '\xff');
      static_cast<void>(unseen.scan({text.data(), size}, Numbers{size}));
    }
  }
}

TEST(Unseen, RefusesWrongUse) {
  EXPECT_THROW(Unseen({""}), Error);
  Unseen unseen({});
  EXPECT_THROW(static_cast<void>(unseen.scan("ab", Numbers{3})), Error);
  EXPECT_THROW(static_cast<void>(unseen.scan("ab", Numbers{2, 1})), Error);
}

}  // namespace
}  // namespace penstock::text
