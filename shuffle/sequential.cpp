#include "shuffle/sequential.h"

#include "core/base/error.h"
#include "shuffle/epoch_run.h"
#include "shuffle/key.h"
#include "shuffle/permutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace penstock::shuffle {
namespace {

// Keeps a fetch's key apart from those of other orders of one seed. Part of algorithm 1.
constexpr std::uint64_t kSequentialFetch = 0x73657175656e;

}  // namespace

Sequential::Sequential(std::uint64_t size) : size_(size) {
  check_order_size("sequential", size);
}

Sequential::Sequential(std::uint64_t size, std::uint64_t seed, std::uint64_t fetch)
    : size_(size), seed_(seed), fetch_(fetch), mixes_(true) {
  check_order_size("sequential", size);
  if (fetch == 0) raise(ErrorKind::InvalidArgument, "order sequential: a fetch of 0: wanted at least 1");
}

void Sequential::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const EpochRun run = epoch_run(size_, first + done * stride, stride, out.size() - done);
    const std::uint64_t first_fetch = run.epoch * ((size_ - 1) / fetch_ + 1);
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::uint64_t index = run.offset + i * stride;
      out[done + i] = {index, first_fetch + index / fetch_, 0, run.epoch};
    }
    if (mixes_) mix(out.subspan(done, run.count), run.epoch);
    done += run.count;
  }
}

// Picks of one epoch, in the order of their indices.
void Sequential::mix(std::span<Pick> picks, std::uint32_t epoch) const {
  const Key key = Key().absorb(kSequentialFetch).absorb(seed_).absorb(epoch);
  std::array<std::uint64_t, kKernelBlock> places;
  for (std::size_t i = 0; i < picks.size();) {
    const std::uint64_t fetch = picks[i].index / fetch_;
    const std::uint64_t begin = fetch * fetch_;
    const std::uint64_t length = std::min(fetch_, size_ - begin);
    const Permutation order(length, key.absorb(fetch).state());
    while (i < picks.size() && picks[i].index - begin < length) {
      std::size_t count = 0;
      while (count < places.size() && i + count < picks.size() && picks[i + count].index - begin < length) {
        places[count] = picks[i + count].index - begin;
        ++count;
      }
      const std::span<std::uint64_t> chunk(places.data(), count);
      order(chunk, chunk);
      for (const std::uint64_t place : chunk) picks[i++].index = begin + place;
    }
  }
}

std::uint64_t Sequential::fetch_end(std::uint64_t position) const {
  return fetches_end(size_, fetch_, 1, position);
}

std::string Sequential::identity(std::uint64_t) const {
  if (!mixes_) return fmt::format(R"({{"name":"sequential","size":{}}})", size_);
  return fmt::format(R"({{"algorithm":{},"fetch":{},"name":"sequential in fetches","seed":{},"size":{}}})", kAlgorithm,
                     fetch_, seed_, size_);
}

}  // namespace penstock::shuffle
