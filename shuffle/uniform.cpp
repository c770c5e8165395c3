#include "shuffle/uniform.h"

#include "shuffle/epoch_run.h"
#include "shuffle/permutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace penstock::shuffle {
namespace {

constexpr std::size_t kFew = 4;     // indices that the batched kernel does not make faster
constexpr std::uint64_t kKept = 4;  // epochs: few runs go on for more of them

}  // namespace

Uniform::Uniform(std::uint64_t size, std::uint64_t seed) : size_(size), seed_(seed) {
  check_order_size("uniform", size);
  for (std::uint64_t epoch = 0; epoch < kKept; ++epoch) kept_.emplace_back(size, seed, epoch);
}

// A key schedule costs as much as several look-ups. Those of later epochs are made for each run, in `made`: a table
// that grew would be shared by threads.
const Permutation& Uniform::permutation(std::uint32_t epoch, std::optional<Permutation>& made) const {
  return epoch < kept_.size() ? kept_[epoch] : made.emplace(size_, seed_, epoch);
}

void Uniform::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  std::array<std::uint64_t, kKernelBlock> indices;
  std::optional<Permutation> made;
  std::size_t done = 0;
  while (done < out.size()) {
    const EpochRun run = epoch_run(size_, first + done * stride, stride, out.size() - done);
    const Permutation& permutation = this->permutation(run.epoch, made);
    for (std::size_t begin = 0; begin < run.count; begin += indices.size()) {
      const std::span<std::uint64_t> chunk(indices.data(), std::min(indices.size(), run.count - begin));
      for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = run.offset + (begin + i) * stride;
      permutation(chunk, chunk);
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        const std::uint64_t number = begin + i;
        out[done + number] = {chunk[i], first + (done + number) * stride, 0, run.epoch};
      }
    }
    done += run.count;
  }
}

void Uniform::pick_at(std::span<const std::uint64_t> positions, std::span<Pick> out) const {
  std::array<std::uint64_t, kKernelBlock> indices;
  std::optional<Permutation> made;
  for (std::size_t done = 0; done < positions.size();) {
    const EpochRun run = epoch_run(size_, positions[done], 1, 1);
    const std::uint64_t begin = positions[done] - run.offset;
    const Permutation& permutation = this->permutation(run.epoch, made);
    std::size_t count = 0;
    while (count < indices.size() && done + count < positions.size() && positions[done + count] - begin < size_) {
      indices[count] = positions[done + count] - begin;
      ++count;
    }
    const std::span<std::uint64_t> chunk(indices.data(), count);
    if (count < kFew) {
      for (std::uint64_t& each : chunk) each = permutation(each);
    } else {
      permutation(chunk, chunk);
    }
    for (std::size_t i = 0; i < count; ++i, ++done) out[done] = {chunk[i], positions[done], 0, run.epoch};
  }
}

std::string Uniform::identity(std::uint64_t) const {
  return fmt::format(R"({{"algorithm":{},"name":"uniform","seed":{},"size":{}}})", kAlgorithm, seed_, size_);
}

}  // namespace penstock::shuffle
