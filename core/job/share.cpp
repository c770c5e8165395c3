#include "core/job/share.h"

#include "core/base/error.h"

#include <algorithm>
#include <string>

namespace penstock {
namespace {

constexpr std::uint64_t kMostTried = 1U << 16;

// "4,000 or 5,000"; "" where 64 bits do not count a multiple.
std::string multiples_nearby(std::uint64_t size, const Share& share) {
  std::uint64_t each = 0;
  if (__builtin_mul_overflow(share.world_size, share.micro_batches, &each)) return "";
  const std::uint64_t below = size / each * each;
  std::string found = below == 0 ? "" : with_commas(below);
  std::uint64_t above = 0;
  if (__builtin_add_overflow(below, each, &above)) return found;
  return found + (found.empty() ? "" : " or ") + with_commas(above);
}

// "512 or 1,024"; "" where no number of ranks suits.
std::string ranks_nearby(std::uint64_t size, const Share& share) {
  const std::vector<std::uint64_t> all = ranks_that_suit(size, share.micro_batches);
  if (all.empty()) return "";
  const auto above = std::upper_bound(all.begin(), all.end(), share.world_size);
  std::string found;
  if (above != all.begin()) found = with_commas(*(above - 1));
  if (above != all.end()) found += (found.empty() ? "" : " or ") + with_commas(*above);
  return found;
}

// ", or a multiple (4,000 or 5,000), or a number of ranks that divides it (512 or 1,024)".
std::string advice(std::uint64_t size, const Share& share) {
  const bool has_parts = share.micro_batches > 1;
  const std::string multiples = multiples_nearby(size, share);
  const std::string ranks = ranks_nearby(size, share);
  std::string found;
  if (!multiples.empty()) {
    const std::string of = has_parts ? fmt::format("global batch that suits {} ranks of {} micro-batches",
                                                   with_commas(share.world_size), with_commas(share.micro_batches))
                                     : "multiple";
    found += fmt::format(", or a {} ({})", of, multiples);
  }
  if (ranks.empty()) return found + "; no number of ranks suits it with these micro-batches";
  return found + fmt::format(", or a number of ranks that {} ({})", has_parts ? "suits" : "divides it", ranks);
}

}  // namespace

std::uint64_t batch_rows(std::uint64_t size, const Share& share) noexcept {
  const std::uint64_t rows = size / share.world_size + (size % share.world_size == 0 ? 0 : 1);
  const std::uint64_t over = rows % share.micro_batches;
  std::uint64_t rounded = rows;
  if (over != 0 && __builtin_add_overflow(rows, share.micro_batches - over, &rounded)) return UINT64_MAX;
  return rounded;
}

std::vector<std::uint64_t> ranks_that_divide(std::uint64_t size) {
  std::vector<std::uint64_t> found{1};
  const auto times = [&](std::uint64_t prime, unsigned power) {
    const std::size_t before = found.size();
    std::uint64_t factor = 1;
    for (unsigned i = 0; i < power; ++i) {
      factor *= prime;
      for (std::size_t k = 0; k < before; ++k) found.push_back(found[k] * factor);
    }
  };
  for (std::uint64_t prime = 2; prime < kMostTried && prime <= size / prime; ++prime) {
    unsigned power = 0;
    for (; size % prime == 0; size /= prime) ++power;
    times(prime, power);
  }
  if (size > 1) times(size, 1);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::uint64_t> ranks_that_suit(std::uint64_t size, std::uint64_t micro_batches) {
  if (micro_batches == 0 || size % micro_batches != 0) return {};
  return ranks_that_divide(size / micro_batches);
}

void check_divides(std::uint64_t size, const Share& share) {
  const std::uint64_t least = size / share.world_size;
  if (size % share.world_size == 0) {
    if (least % share.micro_batches == 0) return;
    raise(ErrorKind::InvalidArgument,
          "micro_batches={} does not divide the {} rows that a rank has of the global batch of {}: give "
          "uneven=\"pad\", which adds rows of padding{}",
          with_commas(share.micro_batches), with_commas(least), with_commas(size), advice(size, share));
  }
  raise(ErrorKind::InvalidArgument,
        "global batch size {} is not a multiple of world size {}: give uneven=\"pad\" (ranks get {} or {} rows, padded "
        "to {}){}",
        with_commas(size), with_commas(share.world_size), with_commas(least), with_commas(least + 1),
        with_commas(batch_rows(size, share)), advice(size, share));
}

}  // namespace penstock
