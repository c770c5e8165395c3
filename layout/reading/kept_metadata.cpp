#include "layout/reading/kept_metadata.h"

#include <span>

namespace penstock::layout {
namespace {

// In the order in which they are kept.
struct Kind {
  File Shard::*file;
  std::unique_ptr<KeptBlocks> KeptMetadata::OfShard::*kept;
};
constexpr Kind kKinds[] = {{&Shard::directory, &KeptMetadata::OfShard::directory},
                           {&Shard::index, &KeptMetadata::OfShard::index},
                           {&Shard::data, &KeptMetadata::OfShard::data}};

std::span<const Kind> kinds_of(KeptMetadata::Files files) {
  const std::span<const Kind> all = kKinds;
  return files == KeptMetadata::Files::All ? all : all.subspan(1, 1);
}

// A sum that no memory can hold is no step, nor are those after it.
std::vector<std::uint64_t> steps_of(const std::vector<Shard>& shards, std::span<const Kind> kinds) {
  std::vector<std::uint64_t> steps;
  std::uint64_t sum = 0;
  for (const Kind& kind : kinds) {
    for (const Shard& shard : shards) {
      const std::uint64_t bytes = KeptBlocks::most_bytes(shard.*kind.file);
      if (bytes >= INT64_MAX - sum) return steps;
      sum += bytes;
    }
    steps.push_back(sum);
  }
  return steps;
}

}  // namespace

KeptMetadata::KeptMetadata(const std::vector<Shard>& shards, Files files)
    : shards_(shards),
      files_(files),
      allowance_(std::make_shared<Allowance>(steps_of(shards, kinds_of(files)))),
      made_(new std::atomic<const OfShard*>[shards.size()] {}) {}

KeptMetadata::~KeptMetadata() {
  for (std::size_t i = 0; i < shards_.size(); ++i) delete made_[i].load();
}

const KeptMetadata::OfShard& KeptMetadata::make(std::uint64_t i) const {
  static const OfShard nothing;
  const std::uint64_t granted = allowance_->granted();
  if (granted == 0) return nothing;
  auto made = std::make_unique<OfShard>();
  const std::vector<std::uint64_t>& steps = allowance_->steps();
  const std::span<const Kind> kinds = kinds_of(files_);
  for (std::size_t k = 0; k < steps.size() && steps[k] <= granted; ++k) {
    (*made).*kinds[k].kept = std::make_unique<KeptBlocks>(shards_[i].*kinds[k].file);
  }
  const OfShard* other = nullptr;
  return made_[i].compare_exchange_strong(other, made.get(), std::memory_order_acq_rel) ? *made.release() : *other;
}

}  // namespace penstock::layout
