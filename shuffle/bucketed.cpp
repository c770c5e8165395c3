#include "shuffle/bucketed.h"

#include "core/base/digest.h"
#include "core/base/error.h"
#include "shuffle/epoch_run.h"
#include "shuffle/key.h"
#include "shuffle/permutation.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace penstock::shuffle {
namespace {

// Keeps the keys of buckets apart from all others of a seed. Part of algorithm 1.
constexpr std::uint64_t kBuckets = 0x6275636b65747321;
constexpr std::uint64_t kMostPool = std::uint64_t{1} << 24;

class Held {
 public:
  explicit Held(std::atomic_flag& flag) noexcept : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) flag_.wait(true, std::memory_order_relaxed);
  }
  ~Held() {
    flag_.clear(std::memory_order_release);
    flag_.notify_one();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  std::atomic_flag& flag_;
};

}  // namespace

Bucketed::Bucketed(std::vector<std::uint32_t> lengths, std::uint64_t seed, std::uint64_t pool, std::uint64_t bucket)
    : lengths_(std::move(lengths)), seed_(seed), pool_(pool), bucket_(bucket) {
  check_order_size("bucketed", lengths_.size());
  if (pool == 0 || pool > kMostPool) {
    raise(ErrorKind::InvalidArgument, "order bucketed: a pool of {}: wanted 1 to {}", with_commas(pool),
          with_commas(kMostPool));
  }
  if (bucket == 0 || bucket > pool) {
    raise(ErrorKind::InvalidArgument, "order bucketed: a bucket of {}: wanted 1 to the pool, {}", with_commas(bucket),
          with_commas(pool));
  }
  digest_ = hex_of(digest_of(std::as_bytes(std::span(lengths_))));
}

Bucketed::PoolPtr Bucketed::make(std::uint32_t epoch, std::uint64_t number) const {
  const std::uint64_t begin = number * pool_;
  const std::uint64_t size = std::min(pool_, lengths_.size() - begin);
  std::vector<std::uint64_t> uniform(size);
  std::iota(uniform.begin(), uniform.end(), begin);
  Permutation(lengths_.size(), seed_, epoch)(uniform, uniform);
  // The length, then the place in the uniform order: places are below 2^24, so both fit.
  std::vector<std::uint64_t> sorted(size);
  for (std::uint64_t i = 0; i < size; ++i) sorted[i] = std::uint64_t{lengths_[uniform[i]]} << 32 | i;
  std::sort(sorted.begin(), sorted.end());
  auto pool = std::make_shared<Pool>(Pool{epoch, number, std::vector<std::uint64_t>(size)});
  const std::uint64_t full = size / bucket_;
  std::vector<std::uint64_t> buckets(full);
  std::iota(buckets.begin(), buckets.end(), 0);
  if (full > 0) {
    const std::uint64_t key = Key().absorb(kBuckets).absorb(seed_).absorb(number).state();
    Permutation(full, key, epoch)(buckets, buckets);
  }
  for (std::uint64_t place = 0; place < size; ++place) {
    const std::uint64_t bucket = place / bucket_;
    const std::uint64_t from = bucket < full ? buckets[bucket] * bucket_ + place % bucket_ : place;
    pool->indices[place] = uniform[sorted[from] & UINT32_MAX];
  }
  return pool;
}

Bucketed::PoolPtr Bucketed::pool_of(std::uint32_t epoch, std::uint64_t number) const {
  {
    const Held held(busy_);
    for (const PoolPtr& pool : kept_) {
      if (pool && pool->epoch == epoch && pool->number == number) return pool;
    }
  }
  PoolPtr made = make(epoch, number);
  const Held held(busy_);
  kept_[next_] = made;
  next_ = (next_ + 1) % kept_.size();
  return made;
}

void Bucketed::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  PoolPtr pool;
  for (std::size_t done = 0; done < out.size();) {
    const EpochRun run = epoch_run(lengths_.size(), first + done * stride, stride, out.size() - done);
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::uint64_t offset = run.offset + i * stride;
      const std::uint64_t number = offset / pool_;
      if (!pool || pool->number != number || pool->epoch != run.epoch) pool = pool_of(run.epoch, number);
      const std::uint64_t position = first + (done + i) * stride;
      out[done + i] = {pool->indices[offset % pool_], position, 0, run.epoch};
    }
    done += run.count;
  }
}

std::string Bucketed::identity(std::uint64_t) const {
  return fmt::format(R"({{"algorithm":{},"bucket":{},"lengths":"{}","name":"bucketed","pool":{},"seed":{},"size":{}}})",
                     kAlgorithm, bucket_, digest_, pool_, seed_, lengths_.size());
}

}  // namespace penstock::shuffle
