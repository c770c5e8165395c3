#include "shuffle/listed.h"

#include "shuffle/epoch_run.h"

#include <fmt/format.h>

#include <utility>

namespace penstock::shuffle {
namespace {

IndexList checked_list(IndexList indices) {
  check_order_size("custom", indices.size);
  return indices;
}

}  // namespace

Listed::Listed(IndexList indices, std::string digest, std::uint64_t fetch, std::uint64_t lanes)
    : indices_(checked_list(std::move(indices))),
      digest_(std::move(digest)),
      fetches_("custom", indices_.size, fetch, lanes) {}

void Listed::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  if (indices_.check_same) indices_.check_same();
  for (std::size_t done = 0; done < out.size();) {
    const EpochRun run = epoch_run(indices_.size, first + done * stride, stride, out.size() - done);
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::uint64_t offset = run.offset + i * stride;
      out[done + i] = {indices_[offset], fetches_.number(run.epoch, offset), 0, run.epoch};
    }
    done += run.count;
  }
}

// Which positions are read together decides none of them.
std::string Listed::identity(std::uint64_t) const {
  return fmt::format(R"({{"digest":"{}","length":{},"name":"custom"}})", digest_, indices_.size);
}

}  // namespace penstock::shuffle
