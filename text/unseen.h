// Unseen: where text has characters or tokens that it did not have before. One thread at a time.
#pragma once

#include "text/skip_seen.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace penstock::text {

class Unseen {
 public:
  /// Throws InvalidArgument for an empty token. With `skip`, another way over what was seen than this processor's best.
  explicit Unseen(const std::vector<std::string>& tokens, SkipSeen skip = best_skip_seen());

  /// Places in `utf8`, ascending, each once, at which a code point or a token begins that no call saw before. `ends`
  /// are those of documents, which follow one another: a token lies within one. What is no UTF-8 is read, but not well.
  /// Throws InvalidArgument for ends that descend or lie beyond the text.
  [[nodiscard]] std::vector<std::uint64_t> scan(std::string_view utf8, std::span<const std::uint64_t> ends);

 private:
  struct Text {
    std::string_view utf8;
    std::span<const std::uint64_t> ends;
  };

  // The unseen tokens of one size that begin with one byte.
  struct Size {
    std::size_t bytes;
    std::int32_t count;
    std::array<std::uint8_t, 32> lasts;  // bit i is set where one may end with byte i
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view token) const noexcept { return std::hash<std::string_view>()(token); }
  };

  void look_at(const Text& text, std::size_t begin, std::size_t end, std::vector<std::uint64_t>& found);
  [[nodiscard]] bool see_character(std::string_view rest);
  [[nodiscard]] bool see_tokens(const Text& text, std::size_t at);
  void count(std::string_view token, std::int32_t change);
  void count_size(std::string_view token, std::int32_t change);
  void set_first(std::uint8_t byte, bool is_first);
  void set_unseen_ascii(std::uint8_t byte, bool is_unseen);

  const SkipSeen skip_;
  const std::unique_ptr<SeenTables> tables_;
  std::unordered_set<std::string, Hash, std::equal_to<>> tokens_;  // that were not seen
  std::vector<std::int32_t> first_counts_;                         // of them by their first byte
  std::vector<std::int32_t> pair_counts_;                          // by the two that they may begin with
  std::vector<std::vector<Size>> sizes_;                           // by their first byte
};

}  // namespace penstock::text
