#include "shuffle/independent.h"

#include "shuffle/draws_advice.h"
#include "shuffle/epoch_run.h"
#include "shuffle/weighted.h"

#include <fmt/format.h>

#include <utility>

namespace penstock::shuffle {
namespace {

// What a key is for. Part of algorithm 3: never renumbered.
constexpr std::uint64_t kWeightedIndependent = 0x776569676874696e;

std::uint64_t checked_size(std::uint64_t size) {
  check_order_size("weighted", size);
  return size;
}

// A number below `range`, all equally likely: scale64() of the stream's first value that does not favour any.
std::uint64_t below(Key stream, std::uint64_t range) {
  for (std::uint64_t counter = 0;; ++counter) {
    const Wide product = Wide{stream.at(counter)} * range;
    const auto low = static_cast<std::uint64_t>(product);
    if (low >= range || low >= (0 - range) % range) return static_cast<std::uint64_t>(product >> 64);
  }
}

}  // namespace

Independent::Independent(WeightTable table, std::uint64_t seed, std::uint64_t size, std::uint64_t fetch,
                         std::uint64_t lanes, std::string name)
    : table_(std::move(table)),
      seed_(seed),
      size_(checked_size(size)),
      fetches_(name.c_str(), size, fetch, lanes),
      name_(std::move(name)),
      digest_(hex_of(table_.digest())) {}

void Independent::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  const Key key = Key().absorb(kWeightedIndependent).absorb(seed_);
  for (std::size_t done = 0; done < out.size();) {
    const EpochRun run = epoch_run(size_, first + done * stride, stride, out.size() - done);
    const Key epoch = key.absorb(run.epoch);
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::uint64_t draw = run.offset + i * stride;
      out[done + i] = {table_.at(below(epoch.absorb(draw), table_.total())), fetches_.number(run.epoch, draw), 0,
                       run.epoch};
    }
    done += run.count;
  }
}

// Which draws are read together decides none of them.
std::string Independent::identity(std::uint64_t) const {
  return fmt::format(
      R"({{"algorithm":{},"draws":{{"name":"independent","size":{}}},"name":"{}","seed":{},"size":{},"table":"{}"}})",
      static_cast<std::uint64_t>(Draws::Independent), size_, name_, seed_, table_.size(), digest_);
}

OrderDifference Independent::difference_to(std::string_view saved, std::uint64_t position) const {
  return drawn_difference(saved, identity(kNever), position);
}

}  // namespace penstock::shuffle
