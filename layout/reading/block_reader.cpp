#include "layout/reading/block_reader.h"

#include "core/base/align.h"
#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "layout/reading/reads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::chrono::milliseconds kPatience{50};

void wait_for(ByteStore& store, Channel& channel, Reads& reads) {
  std::atomic<bool> cancelled{false};
  boost::container::small_vector<Read*, 2> some;
  for (Read& read : reads) {
    read.cancelled = &cancelled;
    some.push_back(&read);
  }
  channel.submit(std::span<Read* const>(some.data(), some.size()));
  std::exception_ptr given_up;
  for (std::size_t left = some.size(); left > 0;) {
    std::array<Read*, 2> done{};
    const std::size_t count = channel.wait(done, kPatience);
    left -= count;
    if (count > 0 || given_up) continue;
    try {
      store.while_waiting();
    } catch (...) {  // the reads end first: they write to memory of the caller
      given_up = std::current_exception();
      cancelled = true;
    }
  }
  if (given_up) std::rethrow_exception(given_up);
  for (const Read& read : reads) {
    if (read.outcome == Outcome::Failed) std::rethrow_exception(read.error);
  }
}

void check_blocks(const File& file, std::uint64_t begin, std::span<const std::byte> blocks,
                  const std::vector<std::uint32_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto block = blocks.subspan(i * kCrcBlockBytes, std::min(kCrcBlockBytes, blocks.size() - i * kCrcBlockBytes));
    if (crc32c(block) == values[i]) continue;
    raise(ErrorKind::Corruption,
          "{}: bytes {} to {} are not those that were written: a flipped bit, or another file; `penstock verify` looks "
          "at all of them",
          file.path(), with_commas(begin + i * kCrcBlockBytes), with_commas(begin + i * kCrcBlockBytes + block.size()));
  }
}

}  // namespace

BlockReader::BlockReader(const File& file, File side, const StoreChoice& through)
    : file_(file),
      side_(std::move(side)),
      store_(choose_store(through, *file.store())),
      channel_(store_.open_channel(ChannelMode::MayWait)) {}

std::span<const std::byte> BlockReader::read(std::uint64_t offset, std::uint64_t size) {
  check_inside(file_, offset, size);
  if (size == 0) return {};
  const std::uint64_t begin = offset / kCrcBlockBytes * kCrcBlockBytes;
  const std::uint64_t stop = std::min(align_up(offset + size, kCrcBlockBytes), file_.bytes);
  const bool checks = side_.store() != nullptr;
  blocks_.resize(stop - begin);
  checks_.resize(checks ? (blocks_.size() + kCrcBlockBytes - 1) / kCrcBlockBytes : 0);
  Reads reads;
  plan_read(file_, begin, blocks_.size(), blocks_.data(), reads);
  const auto values = std::as_writable_bytes(std::span(checks_));
  if (checks) plan_read(side_, begin / kCrcBlockBytes * sizeof(std::uint32_t), values.size(), values.data(), reads);
  wait_for(store_, *channel_, reads);
  check_blocks(file_, begin, blocks_, checks_);
  return std::span<const std::byte>(blocks_).subspan(offset - begin, size);
}

}  // namespace penstock::layout
