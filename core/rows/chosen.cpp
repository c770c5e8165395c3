#include "core/rows/chosen.h"

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/rows/source.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace penstock {
namespace {

constexpr std::uint64_t kBlockWords = 8;  // of 64 bits: a line of the core's cache
constexpr std::uint64_t kHint = 512;

// The place of the i-th bit that is set, of more than i.
unsigned place_of_bit(std::uint64_t word, unsigned i) noexcept {
  unsigned place = 0;
  for (unsigned width = 32; width >= 8; width /= 2) {
    const auto low = static_cast<unsigned>(std::popcount(word & ((std::uint64_t{1} << width) - 1)));
    if (i < low) continue;
    i -= low;
    word >>= width;
    place += width;
  }
  for (; i > 0; --i) word &= word - 1;
  return place + static_cast<unsigned>(std::countr_zero(word));
}

}  // namespace

Chosen::Chosen(std::vector<std::uint64_t> words, std::uint64_t size) : words_(std::move(words)), size_(size) {
  const bool has_more = size % 64 != 0 && !words_.empty() && words_.back() >> (size % 64) != 0;
  if (words_.size() != words_for(size) || has_more) {
    raise(ErrorKind::InvalidArgument, "{} words of bits do not say which of {} observations are chosen",
          with_commas(words_.size()), with_commas(size));
  }
  std::uint64_t count = 0;
  std::uint64_t block = 0;
  starts_.reserve(words_.size() / kBlockWords + 2);
  for (std::size_t first = 0; first < words_.size(); first += kBlockWords, ++block) {
    starts_.push_back(count);
    const std::size_t stop = std::min<std::size_t>(words_.size(), first + kBlockWords);
    for (std::size_t i = first; i < stop; ++i) count += static_cast<std::uint64_t>(std::popcount(words_[i]));
    while (hints_.size() * kHint < count) hints_.push_back(block);
  }
  starts_.push_back(count);
  hints_.push_back(block == 0 ? 0 : block - 1);
}

std::uint64_t Chosen::at(std::uint64_t i) const noexcept {
  const auto from = starts_.begin() + static_cast<std::ptrdiff_t>(hints_[i / kHint]);
  const auto to = starts_.begin() + static_cast<std::ptrdiff_t>(hints_[i / kHint + 1]) + 1;
  const auto block = std::upper_bound(from, to, i) - 1;
  std::uint64_t left = i - *block;
  for (auto word = static_cast<std::uint64_t>(block - starts_.begin()) * kBlockWords;; ++word) {
    const auto here = static_cast<std::uint64_t>(std::popcount(words_[word]));
    if (left < here) return word * 64 + place_of_bit(words_[word], static_cast<unsigned>(left));
    left -= here;
  }
}

std::uint64_t Chosen::before(std::uint64_t observations) const noexcept {
  const std::uint64_t last = observations / 64;
  std::uint64_t word = last / kBlockWords * kBlockWords;
  std::uint64_t count = starts_[word / kBlockWords];
  for (; word < last; ++word) count += static_cast<std::uint64_t>(std::popcount(words_[word]));
  const std::uint64_t rest = observations % 64;
  if (rest > 0) count += static_cast<std::uint64_t>(std::popcount(words_[last] & ((std::uint64_t{1} << rest) - 1)));
  return count;
}

std::string Chosen::digest() const {
  Digest digest;
  digest.update_u64(size_);
  digest.update(std::as_bytes(std::span(words_)));
  return digest.hex();
}

Chosen chosen_of_part(const Source& part, const Chosen& whole) {
  const std::uint64_t size = part.info().size;
  std::vector<std::uint64_t> words(words_for(size));
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint64_t number = part.base_index(i);
    if (number >= whole.size()) {
      raise(ErrorKind::InvalidArgument, "observation {} of a view of which {} were looked at", with_commas(number),
            with_commas(whole.size()));
    }
    if (whole.has(number)) words[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  return {std::move(words), size};
}

}  // namespace penstock
