#include "text/unseen.h"

#include "core/base/error.h"

#include <algorithm>

namespace penstock::text {
namespace {

std::uint8_t byte_of(char each) {
  return static_cast<std::uint8_t>(each);
}

void set_bit(std::uint8_t* bits, std::uint32_t i, bool value) {
  const auto bit = static_cast<std::uint8_t>(1U << (i & 7));
  bits[i >> 3] = static_cast<std::uint8_t>(value ? bits[i >> 3] | bit : bits[i >> 3] & ~bit);
}

// In a table by the low halves of bytes.
void set_half(std::array<std::uint8_t, 16>& table, std::uint8_t byte, bool value) {
  set_bit(table.data(), (byte & 15U) * 8 + (byte >> 4 & 7), value);
}

void set_class(SeenTables& tables, std::uint8_t byte, SeenClass kind, bool value) {
  const std::uint8_t old = tables.classes[byte];
  tables.classes[byte] = static_cast<std::uint8_t>(value ? old | kind : old & ~kind);
}

}  // namespace

Unseen::Unseen(const std::vector<std::string>& tokens, SkipSeen skip)
    : skip_(skip), tables_(std::make_unique<SeenTables>()), first_counts_(256), pair_counts_(65536), sizes_(256) {
  for (std::uint32_t byte = 0; byte < 0x80; ++byte) set_unseen_ascii(static_cast<std::uint8_t>(byte), true);
  for (std::uint32_t byte = 0xc0; byte < 0x100; ++byte) {
    set_class(*tables_, static_cast<std::uint8_t>(byte), kLead, true);
  }
  for (const std::string& token : tokens) {
    if (token.empty()) raise(ErrorKind::InvalidArgument, "an empty token");
    if (tokens_.insert(token).second) count(token, 1);
  }
}

void Unseen::set_unseen_ascii(std::uint8_t byte, bool is_unseen) {
  set_class(*tables_, byte, kUnseenAscii, is_unseen);
  set_half(tables_->unseen_ascii, byte, is_unseen);
}

void Unseen::set_first(std::uint8_t byte, bool is_first) {
  set_class(*tables_, byte, kTokenFirst, is_first);
  set_half(byte < 0x80 ? tables_->low_firsts : tables_->high_firsts, byte, is_first);
}

void Unseen::count_size(std::string_view token, std::int32_t change) {
  auto& sizes = sizes_[byte_of(token[0])];
  auto found = std::find_if(sizes.begin(), sizes.end(), [&](const Size& each) { return each.bytes == token.size(); });
  if (found == sizes.end()) found = sizes.insert(found, {token.size(), 0, {}});
  found->count += change;
  set_bit(found->lasts.data(), byte_of(token.back()), true);
  if (found->count == 0) sizes.erase(found);
}

void Unseen::count(std::string_view token, std::int32_t change) {
  const std::uint8_t first = byte_of(token[0]);
  first_counts_[first] += change;
  set_first(first, first_counts_[first] != 0);
  count_size(token, change);
  const auto count_pair = [&](std::uint32_t second) {
    const std::uint32_t pair = first + 256 * second;
    pair_counts_[pair] += change;
    set_bit(tables_->pairs.data(), pair, pair_counts_[pair] != 0);
  };
  if (token.size() > 1) return count_pair(byte_of(token[1]));
  for (std::uint32_t second = 0; second < 256; ++second) count_pair(second);
}

bool Unseen::see_character(std::string_view rest) {
  const std::uint8_t first = byte_of(rest[0]);
  const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (rest.size() < size) return false;
  const auto* const at = reinterpret_cast<const std::uint8_t*>(rest.data());
  const std::uint32_t code = size == 2 ? code_at<1>(at) : size == 3 ? code_at<2>(at) : code_at<3>(at);
  if (has_bit(tables_->characters.data(), code)) return false;
  set_bit(tables_->characters.data(), code, true);
  return true;
}

bool Unseen::see_tokens(const Text& text, std::size_t at) {
  const std::string_view rest = text.utf8.substr(at);
  // A document's end is looked for only where a token is.
  std::vector<std::string_view> seen;
  for (const Size& size : sizes_[byte_of(rest[0])]) {
    if (size.bytes > rest.size() || !has_bit(size.lasts.data(), byte_of(rest[size.bytes - 1]))) continue;
    const std::string_view token = rest.substr(0, size.bytes);
    if (!tokens_.contains(token)) continue;
    const auto end = std::upper_bound(text.ends.begin(), text.ends.end(), at);
    if (end != text.ends.end() && at + size.bytes <= *end) seen.push_back(token);
  }
  for (const std::string_view token : seen) {
    tokens_.erase(tokens_.find(token));
    count(token, -1);
  }
  return !seen.empty();
}

void Unseen::look_at(const Text& text, std::size_t begin, std::size_t end, std::vector<std::uint64_t>& found) {
  for (std::size_t at = begin; at < end; ++at) {
    const std::uint8_t byte = byte_of(text.utf8[at]);
    const std::uint8_t kind = tables_->classes[byte];
    if (kind == 0) continue;
    bool is_new = false;
    if ((kind & kUnseenAscii) != 0) {
      set_unseen_ascii(byte, false);
      is_new = true;
    } else if ((kind & kLead) != 0) {
      is_new = see_character(text.utf8.substr(at));
    }
    if ((kind & kTokenFirst) != 0) {
      // The last byte may be a token of one byte, for which all pairs are set.
      const std::uint32_t second = at + 1 < text.utf8.size() ? byte_of(text.utf8[at + 1]) : 0;
      if (has_bit(tables_->pairs.data(), byte + 256 * second) && see_tokens(text, at)) is_new = true;
    }
    if (is_new) found.push_back(at);
  }
}

std::vector<std::uint64_t> Unseen::scan(std::string_view utf8, std::span<const std::uint64_t> ends) {
  if (!std::is_sorted(ends.begin(), ends.end()) || (!ends.empty() && ends.back() > utf8.size())) {
    raise(ErrorKind::InvalidArgument, "ends of documents that descend, or lie beyond {} bytes", utf8.size());
  }
  const Text text{utf8, ends};
  std::vector<std::uint64_t> found;
  const auto* const data = reinterpret_cast<const std::uint8_t*>(utf8.data());
  const auto* const end = data + utf8.size();
  const std::uint8_t* at = data;
  while (true) {
    at = skip_(*tables_, at, end);
    const auto begin = static_cast<std::size_t>(at - data);
    if (utf8.size() - begin < kSkipBlock + kSkipMargin) {
      look_at(text, begin, utf8.size(), found);
      return found;
    }
    look_at(text, begin, begin + kSkipBlock, found);
    at += kSkipBlock;
  }
}

}  // namespace penstock::text
