// Steering: the weights that were set while a job ran, each from a position on. A list that only grows by copies which
// share all but its end, so that a job, its states and their batches may each keep one of its own.
//
// Text and numbers of 100,000 entries are a few MB; an entry is found in O(log). Immutable: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

class Steering {
 public:
  struct Entry {
    std::uint64_t begin = 0;             // position
    std::vector<std::uint64_t> weights;  // by source; not all of them 0
  };

  /// Without entries; `names` of the sources, by number.
  explicit Steering(std::vector<std::string> names);

  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t begin(std::size_t number) const;
  [[nodiscard]] std::vector<std::uint64_t> weights(std::size_t number) const;
  /// How many begin before `position`.
  [[nodiscard]] std::size_t count_before(std::uint64_t position) const;
  /// How many first ones are those of `other`, which has the same names.
  [[nodiscard]] std::size_t common(const Steering& other) const;

  /// The first `count` of them.
  [[nodiscard]] Steering first(std::size_t count) const;
  /// With `entries` too, whose begins rise; of two that begin at one position the given one counts.
  [[nodiscard]] Steering with(std::span<const Entry> entries) const;
  /// With those of `other` from its number `first` on, where none begins already.
  [[nodiscard]] Steering with_later(const Steering& other, std::size_t first) const;

  /// The text of the first `count` entries: "[0,3,1],[40,1,1]", begin and weights, without common divisors.
  void append_text(std::size_t count, std::string& out) const;
  /// The text of the last entry; there is one.
  [[nodiscard]] std::string last_text() const;
  [[nodiscard]] std::uint64_t text_bytes() const;
  /// XXH3-128 of all of the text, in hex digits.
  [[nodiscard]] std::string digest() const;

 private:
  static constexpr std::size_t kChunk = 128;

  struct Chunk {
    std::vector<std::uint64_t> begins;
    std::vector<std::uint32_t> ends;  // of each entry's text …
    std::string text;                 // … in this one, in which they are separated by commas

    [[nodiscard]] std::string_view entry(std::size_t number) const;
    void add(std::uint64_t begin, std::string_view entry);
  };
  class Builder;

  std::vector<std::string> names_;
  std::vector<std::shared_ptr<const Chunk>> chunks_;  // all but the last are full
  std::size_t size_ = 0;
};

}  // namespace penstock
