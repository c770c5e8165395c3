#include "shuffle/permutation.h"

#include "core/base/error.h"

#include <algorithm>
#include <utility>

namespace penstock::shuffle {
namespace {

[[noreturn]] void raise_index(std::uint64_t index, std::uint64_t size) {
  raise(ErrorKind::InvalidArgument, "index {} of a permutation of {}: wanted one below its size", with_commas(index),
        with_commas(size));
}

void check_size(std::uint64_t size) {
  if (size == 0) raise(ErrorKind::InvalidArgument, "a permutation of 0 elements: wanted at least 1");
  if (size > kMaxSize) {
    raise(ErrorKind::InvalidArgument, "a permutation of {} elements: wanted at most 2^52 = {}", with_commas(size),
          with_commas(kMaxSize));
  }
}

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch)
    : size_(size), seed_(seed), epoch_(epoch) {
  check_size(size);
  const Key key = Key().absorb(seed).absorb(epoch).absorb(size);
  if (small()) {
    fill_table(key);
  } else {
    network_ = Network(size, key);
  }
}

void Permutation::fill_table(Key key) {
  for (std::uint64_t i = 0; i < size_; ++i) table_.forward[i] = static_cast<std::uint8_t>(i);
  for (std::uint64_t i = size_ - 1; i > 0; --i) {
    std::swap(table_.forward[i], table_.forward[scale64(key.at(i), i + 1)]);
  }
  for (std::uint64_t i = 0; i < size_; ++i) table_.inverse[table_.forward[i]] = static_cast<std::uint8_t>(i);
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  if (index >= size_) raise_index(index, size_);
  return small() ? table_.forward[index] : network_.forward(index);
}

std::uint64_t Permutation::inverse(std::uint64_t value) const {
  if (value >= size_) raise_index(value, size_);
  return small() ? table_.inverse[value] : network_.inverse(value);
}

void Permutation::check(std::span<const std::uint64_t> in, std::span<std::uint64_t> out) const {
  if (in.size() != out.size()) {
    raise(ErrorKind::InvalidArgument, "{} indices and room for {} results: wanted equal lengths", in.size(),
          out.size());
  }
  const auto outside = std::find_if(in.begin(), in.end(), [this](std::uint64_t index) { return index >= size_; });
  if (outside != in.end()) raise_index(*outside, size_);
}

KernelInput Permutation::kernel_input() const {
  const Sides& sides = network_.sides();
  KernelInput input{size_, sides.a, sides.b, 1.0 / sides.b, {}, {}};
  for (unsigned i = 0; i < kKernelRounds; ++i) {
    input.low[i] = network_.keys()[i].low;
    input.high[i] = network_.keys()[i].high;
  }
  return input;
}

template <typename Walk>
void Permutation::map(std::span<const std::uint64_t> in, std::span<std::uint64_t> out, KernelPass pass,
                      const std::array<std::uint8_t, kTableSize>& table, const Walk& walk) const {
  check(in, out);
  if (small()) {
    std::transform(in.begin(), in.end(), out.begin(), [&](std::uint64_t index) { return table[index]; });
    return;
  }
  const KernelInput input = kernel_input();
  for (std::size_t begin = 0; begin < in.size(); begin += kKernelBlock) {
    const std::size_t count = std::min(kKernelBlock, in.size() - begin);
    if (!pass(input, in.data() + begin, out.data() + begin, count)) continue;
    for (std::uint64_t& value : out.subspan(begin, count)) {
      if (value >= size_) value = walk(value);
    }
  }
}

void Permutation::operator()(std::span<const std::uint64_t> in, std::span<std::uint64_t> out, Form form) const {
  map(in, out, kernel_of(form).forward, table_.forward,
      [this](std::uint64_t index) { return network_.forward(index); });
}

void Permutation::inverse(std::span<const std::uint64_t> in, std::span<std::uint64_t> out, Form form) const {
  map(in, out, kernel_of(form).inverse, table_.inverse,
      [this](std::uint64_t value) { return network_.inverse(value); });
}

}  // namespace penstock::shuffle
