// Tokens: the words, signs and literals of a condition's text. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::layout {

struct ConditionToken {
  enum class Kind : std::uint8_t { Word, Name, Text, Digits, Sign, End };
  Kind kind = Kind::End;
  std::string_view text;  // as it stands there
  std::size_t at = 0;     // the byte where it begins
  std::string value;      // Name, Text: what the quotes hold; Word: in lower case
};

class ConditionTokens {
 public:
  /// Throws InvalidArgument for the first token, as next() does.
  explicit ConditionTokens(std::string_view text);

  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  [[nodiscard]] const ConditionToken& now() const noexcept { return now_; }
  /// The one that is there, after which the next one is. Throws InvalidArgument: quotes that do not end, a character
  /// that no condition has.
  ConditionToken next();
  [[nodiscard]] bool is_word(std::string_view word) const noexcept;
  [[nodiscard]] bool is_sign(std::string_view sign) const noexcept;
  /// Takes it if it is there.
  bool take_word(std::string_view word);
  bool take_sign(std::string_view sign);

 private:
  ConditionToken read();
  ConditionToken read_quoted(char quote);
  [[nodiscard]] std::size_t length_while(bool (*belongs)(char)) const;

  std::string_view text_;
  std::size_t at_ = 0;
  ConditionToken now_;
};

/// True if `word`, in lower case, is one of the grammar's: a column of this name stands in quotes.
bool is_keyword(std::string_view word) noexcept;
/// True for a name that needs no quotes.
bool is_plain_name(std::string_view name) noexcept;

}  // namespace penstock::layout
