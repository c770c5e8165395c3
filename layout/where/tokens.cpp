#include "layout/where/tokens.h"

#include "core/base/error.h"
#include "layout/where/condition.h"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::layout {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Letters that are not ASCII too.
constexpr bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Bytes of the number that `text` begins with: digits, a fraction, an exponent.
std::size_t number_length(std::string_view text) {
  std::size_t end = 0;
  const auto digits = [&] {
    const std::size_t from = end;
    while (end < text.size() && is_digit(text[end])) ++end;
    return end > from;
  };
  digits();
  if (end < text.size() && text[end] == '.') {
    ++end;
    digits();
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const std::size_t before = end++;
    if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
    if (!digits()) end = before;
  }
  return end;
}

// Bytes of the character that `text` begins with; 0 if it is no UTF-8.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned two = first << 8 | byte(1);  // in these, more forms than one, surrogates, beyond the last character
  if ((two >= 0xE080 && two < 0xE0A0) || (two >= 0xEDA0 && two <= 0xEDBF)) return 0;
  return (two >= 0xF080 && two < 0xF090) || two >= 0xF490 ? 0 : length;
}

std::string_view instead_of(char sign) {
  switch (sign) {
    case '&': return ": write and";
    case '|': return ": write or";
    case '!':
    case '~': return ": write not";
    case '*':
    case '/':
    case '%': return ": it has no arithmetic";
    default: return "";
  }
}

}  // namespace

bool is_keyword(std::string_view word) noexcept {
  constexpr std::array<std::string_view, 8> kKeywords{"and", "false", "in", "is", "not", "null", "or", "true"};
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

bool is_plain_name(std::string_view name) noexcept {
  if (name.empty() || is_digit(name.front()) || name.size() > 255) return false;
  return std::all_of(name.begin(), name.end(), is_of_name) && !is_keyword(lower(name));
}

ConditionTokens::ConditionTokens(std::string_view text) : text_(text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) raise(ErrorKind::InvalidArgument, "a condition whose byte {} is no UTF-8", with_commas(at + 1));
    at += length;
  }
  now_ = read();
}

ConditionToken ConditionTokens::next() {
  return std::exchange(now_, read());
}

bool ConditionTokens::is_word(std::string_view word) const noexcept {
  return now_.kind == ConditionToken::Kind::Word && now_.value == word;
}

bool ConditionTokens::is_sign(std::string_view sign) const noexcept {
  return now_.kind == ConditionToken::Kind::Sign && now_.text == sign;
}

bool ConditionTokens::take_word(std::string_view word) {
  if (!is_word(word)) return false;
  next();
  return true;
}

bool ConditionTokens::take_sign(std::string_view sign) {
  if (!is_sign(sign)) return false;
  next();
  return true;
}

std::size_t ConditionTokens::length_while(bool (*belongs)(char)) const {
  const std::string_view rest = text_.substr(at_);
  return static_cast<std::size_t>(std::find_if_not(rest.begin(), rest.end(), belongs) - rest.begin());
}

ConditionToken ConditionTokens::read() {
  at_ += length_while(is_blank);
  const std::string_view rest = text_.substr(at_);
  ConditionToken token;
  token.at = at_;
  if (rest.empty()) return token;
  const char first = rest.front();
  if (first == '\'' || first == '"') return read_quoted(first);
  const bool is_number = is_digit(first) || (first == '.' && rest.size() > 1 && is_digit(rest[1]));
  std::size_t length = 1;
  if (is_number) {
    token.kind = ConditionToken::Kind::Digits;
    length = number_length(rest);
    if (length < rest.size() && (is_of_name(rest[length]) || rest[length] == '.')) {
      raise(ErrorKind::InvalidArgument,
            "{}: a number that goes on with \"{}\"; a name that begins with a digit stands "
            "in double quotes",
            place_in(text_, at_ + length), excerpt(rest.substr(length, 1)));
    }
  } else if (is_of_name(first)) {
    token.kind = ConditionToken::Kind::Word;
    length = length_while(is_of_name);
    token.value = lower(rest.substr(0, length));
  } else {
    constexpr std::array<std::string_view, 13> kSigns{"<>", "<=", ">=", "!=", "==", "<", ">",
                                                      "=",  "(",  ")",  ",",  "-",  "+"};
    const auto* const sign = std::find_if(kSigns.begin(), kSigns.end(),
                                          [&](std::string_view each) { return rest.substr(0, each.size()) == each; });
    if (sign == kSigns.end()) {
      raise(ErrorKind::InvalidArgument, "{}: no condition has \"{}\"{}", place_in(text_, at_),
            excerpt(rest.substr(0, 1)), instead_of(first));
    }
    token.kind = ConditionToken::Kind::Sign;
    length = sign->size();
  }
  token.text = rest.substr(0, length);
  at_ += length;
  return token;
}

ConditionToken ConditionTokens::read_quoted(char quote) {
  ConditionToken token;
  token.kind = quote == '"' ? ConditionToken::Kind::Name : ConditionToken::Kind::Text;
  token.at = at_;
  std::size_t at = at_ + 1;
  for (;; ++at) {
    const std::size_t end = text_.find(quote, at);
    if (end == std::string_view::npos) {
      raise(ErrorKind::InvalidArgument, "{}: this {} does not end: a {} is missing{}", place_in(text_, at_),
            quote == '"' ? "name" : "text", quote, quote == '"' ? "" : "; one inside of a text is written twice, ''");
    }
    token.value += text_.substr(at, end - at);
    at = end + 1;
    if (at >= text_.size() || text_[at] != quote) break;
    token.value += quote;
  }
  token.text = text_.substr(at_, at - at_);
  at_ = at;
  return token;
}

}  // namespace penstock::layout
