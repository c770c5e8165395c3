#include "layout/where/condition.h"

#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace penstock::layout {
namespace {

template <typename Call>
std::string message_of(Call&& call) {
  return penstock::testing::message_of(call, ErrorKind::InvalidArgument);
}

std::string text_of(std::string_view text) {
  return condition_text(parse_condition(text));
}

TEST(Condition, ConditionsThatAreWrittenOtherwiseHaveOneTextWhichParsesToItself) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> same{
      {"a > 1",
       {"a>1", "(a > 1)", "((a) > ((1)))", "1 < a", "a > 1.0", "a > 10e-1", "a > +1", "not a <= 1", "NOT (a<=1)",
        "not not a > 1", "a > 1 and a > 1", " a\n\t>\r1 ", "\"a\" > 1"}},
      {"a <> 1", {"a != 1", "not a = 1", "not a == 1", "not a in (1)", "a not in (1, 1.0)", "1 <> a"}},
      {"a = 1 and b = 2", {"b = 2 AND a = 1", "(b = 2) and ((a = 1))", "not (a <> 1 or b <> 2)"}},
      {"(a = 1 and b = 2) or c = 3", {"a = 1 and b = 2 or c = 3", "c = 3 or b = 2 and a = 1"}},
      {"a = 1 and (b = 2 or c = 3)", {"(b = 2 or c = 3) and a = 1", "(c = 3 or b = 2) and a = 1 and a = 1"}},
      {"a = 1 or b = 2 or c = 3", {"(a = 1 or b = 2) or c = 3", "c = 3 or (b = 2 or a = 1)"}},
      {"a in (-1.5, 2, 10)", {"a IN (10, 2, -1.5, 2)", "not a not in (10,2,-15e-1)", "a in (null, 2, 10, -1.5)"}},
      {"a not in ('b', 'c''d')", {"not a in ('c''d', 'b')", "not (a in ('b','c''d','b'))"}},
      {"a is null", {"a IS NULL", "not a is not null", "(a) is null"}},
      {"a is not null", {"not a is null", "not (a is null)"}},
      {"a", {"a = true", "true = a", "a <> false", "not a = false", "not not a", "a in (true)", "a in (null, true)"}},
      {"not a", {"a = false", "a <> true", "not a = true", "a in (false)", "a not in (true)"}},
      {"a < b", {"b > a", "not a >= b", "not (b <= a)"}},
      {"a = null", {"null = a", "a in (null)"}},
      {"a <> null", {"not a = null", "a not in (1, null)", "a not in (null)"}},
      {"true", {"1 = 1", "1 = 1.0", "'a' < 'b'", "not false", "true = true", "1 < 1.5", "-1 > -1.5"}},
      {"false", {"1 > 1", "'a' = 'A'", "false <> false", "2.5 = 2"}},
      {"null", {"null = null", "1 = null", "not null", "not (null = 1)"}},
      {"\"and\" = 1 and \"layers/x\" = 2 and \"quote\"\"\" = 3 and Ünde = 4",
       {"Ünde = 4 and \"quote\"\"\" = 3 and \"layers/x\" = 2 and \"and\" = 1"}},
      {"a = '' or a = 'it''s \"so\"'", {"a = 'it''s \"so\"' or a = ''"}},
      {"a = -9223372036854775808 or a = 18446744073709551615",
       {"a = 18446744073709551615 or a = -9223372036854775808"}},
      {"a = 1e+22 or a = 5e-324", {"a = 10000000000000000000000.0 or a = 5e-324"}},
      {"a = 18446744073709551616.0", {"a = 18446744073709552000.0", "a = 1.8446744073709552e19"}},
      {"a = 0", {"a = -0", "a = -0.0", "a = 0e9"}},
  };
  for (const auto& [text, others] : same) {
    EXPECT_EQ(text_of(text), text);
    for (const std::string& other : others) EXPECT_EQ(text_of(other), text) << other;
  }
}

TEST(Condition, WhatTheGrammarHasNotIsRefusedInWordsThatSayWhere) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"", "an empty condition"},
      {"  ", "an empty condition"},
      {"score > 0,8",
       "condition \"score > 0,8\", character 10: \",\" where the condition should end or go on by and, or"},
      {"a >", "character 4: the end where a name, a value or a ( is wanted"},
      {"a > and b", "character 5: \"and\" where a name, a value or a ( is wanted"},
      {"(a > 1", "character 7: the end where a ) is wanted, for the ( at character 1"},
      {"é = 1 and (a > 1", "for the ( at character 11"},
      {"a > 1)", "character 6: \")\" where the condition should end or go on by and, or: no ( belongs to it"},
      {"a = 'it's'", "character 9: \"s\" where the condition should end"},
      {"a = 'it", "character 5: this text does not end: a ' is missing; one inside of a text is written twice, ''"},
      {"\"a = 1", "character 1: this name does not end: a \" is missing"},
      {"a between 1 and 2", "character 3: the grammar has no \"between\" here: write a >= 1 and a <= 2"},
      {"a like 'x%'", "the grammar has no \"like\" here: text is compared whole"},
      {"a not like 'x%'", "the grammar has no \"like\" here: text is compared whole"},
      {"a + 1 > 2", "character 3: the grammar has no \"+\" here: it has no arithmetic"},
      {"a-1 > 2", "character 2: the grammar has no \"-\" here: it has no arithmetic"},
      {"1 < a < 2", "character 7: the grammar has no \"<\" here: one comparison has two sides: join two by and"},
      {"a & b", "character 3: no condition has \"&\": write and"},
      {"a | b", "character 3: no condition has \"|\": write or"},
      {"!a", "character 1: no condition has \"!\": write not"},
      {"a = 1;", "character 6: no condition has \";\""},
      {"a = 1 -- x", "the grammar has no \"-\" here"},
      {"a in ()", "character 7: an empty list, which has no value"},
      {"a in 1", "character 6: \"1\" where a ( is wanted: in ('a', 'b')"},
      {"a in (1 2)", "character 9: \"2\" where a , or a ) is wanted"},
      {"a in (b)", "character 7: \"b\" where a value is wanted"},
      {"a in (\"b\")", "character 7: \"b\" is a name: a text stands in single quotes, 'b'"},
      {"1 in (1)", "in is of a column"},
      {"(a > 1) in (true)", "in is of a column"},
      {"a not 1", "character 7: \"1\" after not"},
      {"a is 1", "character 6: \"1\" after is: only is null and is not null are known"},
      {"a is true", "\"true\" after is"},
      {"(a > 1) is null", "is null is of a column"},
      {"(a > 1) = (b > 1)", "character 9: a condition is compared"},
      {"a > 1 = true", "one comparison has two sides"},
      {"1", "a number alone is no condition"},
      {"a and 'x'", "character 7: a text alone is no condition"},
      {"1 = 'x'", "character 3: a number is compared with a text"},
      {"a < true", "character 3: booleans are equal or not"},
      {"a = 18446744073709551616", "character 5: 18446744073709551616 is beyond 64 bits"},
      {"a = -9223372036854775809", "character 5: 9223372036854775809 is beyond 64 bits"},
      {"a = 1e999", "1e999 is beyond 64 bits"},
      {"a = 1x", "character 6: a number that goes on with \"x\""},
      {"a = 1.2.3", "character 8: a number that goes on with \".\""},
      {"a = - x", "character 7: \"x\" where a number is wanted, after a sign"},
      {"a = 1 and", "character 10: the end where a name, a value or a ( is wanted"},
      {"a = \xff", "no UTF-8"},
      {"a = 'x\xc3'", "no UTF-8"},
      {std::string(101, '(') + "a" + std::string(101, ')'), "character 101: more than 100 parentheses deep"},
      {"a = '" + std::string(1 << 20, 'x') + "'", "a condition of 1,048,582 bytes: at most 1,048,576"},
  };
  for (const auto& [text, words] : wrong) {
    const std::string message = message_of([&, &text = text] { parse_condition(text); });
    EXPECT_NE(message.find(words), std::string::npos) << text.substr(0, 60) << "\n  " << message;
  }
}

TEST(Condition, ALongConditionIsShownWhereItIsWrong) {
  const std::string many(400, 'a');
  const std::string message = message_of([&] { parse_condition(many + " = 1 and é = 2 2 and " + many + " = 3"); });
  EXPECT_NE(message.find("…"), std::string::npos);
  EXPECT_NE(message.find("and é = 2 2 and"), std::string::npos) << message;
  EXPECT_NE(message.find("character 416"), std::string::npos) << message;
  EXPECT_LT(message.size(), 300U);
}

TEST(Condition, LongChainsAndDeepOnesAreParsed) {
  std::string chain = "a = 0";
  for (int i = 1; i < 20'000; ++i) chain += " or a = " + std::to_string(i);
  EXPECT_EQ(parse_condition(chain).parts.size(), 20'000U);
  std::string nots;
  for (int i = 0; i < 100'001; ++i) nots += "not ";
  EXPECT_EQ(text_of(nots + "a"), "not a");
  EXPECT_EQ(text_of(std::string(100, '(') + "a" + std::string(100, ')')), "a");
}

}  // namespace
}  // namespace penstock::layout
