#include "text/ids_in_line.h"

#include "text/written.h"

#include <bit>
#include <cstring>

namespace penstock::text {
namespace {

constexpr std::size_t kWord = 8;

// The bytes that are read at once have the first one lowest.
bool can_read_words() {
  return std::endian::native == std::endian::little;
}

const char* behind_space(const char* at, const char* end) {
  while (at != end && *at == ' ') ++at;
  return at;
}

// Up to seven digits, without needless zeros, as an integer; `digits` is how many there are, 0 for anything else.
std::uint32_t read_digits(const char* at, std::size_t& digits) {
  constexpr std::uint64_t kZeros = 0x3030303030303030;
  constexpr std::uint64_t kToHigh = 0x7676767676767676;  // lifts all but 0 to 9 to the highest bit
  constexpr std::uint64_t kHighest = 0x8080808080808080;
  std::uint64_t word = 0;
  std::memcpy(&word, at, kWord);
  word ^= kZeros;
  const std::uint64_t others = ((word + kToHigh) | word) & kHighest;
  digits = others == 0 ? 0 : static_cast<std::size_t>(std::countr_zero(others)) / 8;
  if (digits == 0 || (*at == '0' && digits > 1)) {
    digits = 0;
    return 0;
  }
  word <<= 64 - 8 * digits;  // zeros before them
  word = (word * 10 + (word >> 8)) & 0x00ff00ff00ff00ff;
  word = (word * 100 + (word >> 16)) & 0x0000ffff0000ffff;
  return static_cast<std::uint32_t>(word * 10000 + (word >> 32));
}

// Where the list of a line ends that begins at `at`; null for one that is not plain. `stop`: where a word ends there
// may be no more to read.
const char* read_list(const char* at, const char* stop, std::vector<std::int64_t>& ids) {
  if (at != stop && *at == ']') return at;
  while (stop - at > static_cast<std::ptrdiff_t>(kWord) + 1) {
    std::size_t digits = 0;
    const std::uint32_t id = read_digits(at, digits);
    if (digits == 0) return nullptr;
    ids.push_back(id);
    at += digits;
    if (*at == ']') return at;
    if (*at != ',') return nullptr;
    ++at;
    if (*at == ' ') ++at;
  }
  return nullptr;
}

// Whether a key that begins at `key` is one of the outermost object, if the line is JSON: no other object begins before
// it, and it is no part of a string, in which a quotation mark follows a backslash.
bool is_outermost(std::string_view line, std::size_t key) {
  if (line[0] != '{' || std::memchr(line.data() + 1, '{', key - 1) != nullptr) return false;
  std::size_t before = key - 1;
  while (before > 0 && line[before] == ' ') --before;
  return line[before] == ',' || line[before] == '{';
}

}  // namespace

IdsInLine::IdsInLine(std::string_view column) {
  ByteVector written;
  put_json_string(written, column);
  if (written.size() != column.size() + 2 || !can_read_words()) return;
  // With what may follow a string its first quotation mark could be the last one of a string.
  if (!column.empty() && std::string_view(" ,:]}").find(column.front()) != std::string_view::npos) return;
  key_.assign(written.begin(), written.end());
}

std::optional<IdsInLine::Place> IdsInLine::read(std::string_view line, std::size_t behind,
                                                std::vector<std::int64_t>& ids) const {
  if (key_.empty() || behind < kWord + 2) return std::nullopt;
  const std::size_t key = line.find(key_);
  if (key == std::string_view::npos || key == 0 || !is_outermost(line, key)) return std::nullopt;
  const char* const end = line.data() + line.size();
  const char* at = behind_space(line.data() + key + key_.size(), end);
  if (at == end || *at != ':') return std::nullopt;
  at = behind_space(at + 1, end);
  if (at == end || *at != '[') return std::nullopt;
  const char* const first = at + 1;
  const char* const last = read_list(first, end + kWord + 2, ids);
  if (last == nullptr || last >= end) return std::nullopt;
  return Place{static_cast<std::size_t>(first - line.data()), static_cast<std::size_t>(last - line.data())};
}

}  // namespace penstock::text
