#include "shuffle/balanced.h"

#include "core/base/error.h"
#include "shuffle/epoch_run.h"
#include "shuffle/permutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace penstock::shuffle {
namespace {

// What a key is for. Part of algorithm 1: never renumbered.
enum BalancedPurpose : std::uint64_t { kBalancedOrder = 0x62616c616e636564, kRound = 1, kMembers };

}  // namespace

Balanced::Balanced(ClassMembers members, std::uint64_t seed, std::uint64_t size, std::uint64_t fetch,
                   std::uint64_t lanes)
    : members_(std::move(members)),
      seed_(seed),
      key_(Key().absorb(kBalancedOrder).absorb(seed)),
      size_(size),
      fetch_(fetch),
      lanes_(std::min(lanes, size)),  // each position is a lane of its own then
      digest_(hex_of(members_.digest())) {
  check_order_size("balanced", size);
  if (fetch == 0 || lanes == 0) {
    raise(ErrorKind::InvalidArgument, "order balanced: fetch {}, lanes {}: wanted at least 1 of each", fetch, lanes);
  }
}

// `classes`: the order of a round's classes; made anew where the position is of another round.
std::uint64_t Balanced::index_at(std::uint64_t position, std::optional<Permutation>& classes) const {
  const std::uint64_t round = position / members_.classes();
  if (!classes || classes->epoch() != round) classes.emplace(members_.classes(), key_.absorb(kRound).state(), round);
  const std::uint64_t number = (*classes)(position % members_.classes());
  const std::uint64_t count = members_.count(number);
  const Permutation epoch(count, key_.absorb(kMembers).absorb(number).state(), round / count);
  return members_.member(number, epoch(round % count));
}

void Balanced::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  std::optional<Permutation> classes;
  for (std::size_t done = 0; done < out.size();) {
    const EpochRun run = epoch_run(size_, first + done * stride, stride, out.size() - done);
    const std::uint64_t of_a_lane = (size_ - 1) / lanes_ / fetch_ + 1;  // fetches in an epoch
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::uint64_t offset = run.offset + i * stride;
      const std::uint64_t fetch = offset / lanes_ / fetch_;
      out[done + i] = {index_at(first + (done + i) * stride, classes),
                       (run.epoch * of_a_lane + fetch) * lanes_ + offset % lanes_, 0, run.epoch};
    }
    done += run.count;
  }
}

std::uint64_t Balanced::fetch_end(std::uint64_t position) const {
  return fetches_end(size_, fetch_, lanes_, position);
}

// Which positions are read together decides none of them.
std::string Balanced::identity(std::uint64_t) const {
  return fmt::format(R"({{"algorithm":{},"name":"balanced","seed":{},"size":{},"table":"{}"}})", kAlgorithm, seed_,
                     size_, digest_);
}

}  // namespace penstock::shuffle
