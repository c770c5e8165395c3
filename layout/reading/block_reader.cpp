#include "layout/reading/block_reader.h"

#include "core/base/align.h"
#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "core/base/retry_budget.h"
#include "core/io/naming.h"
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
    read.budget = RetryBudget::present();
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

// False: they were a wrong copy, and what is read again may be right.
bool check_blocks(const File& file, const File& side, std::uint64_t begin, std::span<const std::byte> blocks,
                  const std::vector<std::uint32_t>& values, bool is_again) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto block = blocks.subspan(i * kCrcBlockBytes, std::min(kCrcBlockBytes, blocks.size() - i * kCrcBlockBytes));
    if (crc32c(block) == values[i]) continue;
    const bool had_copy = file.store()->doubt(file, begin, blocks.size());
    const bool had_values = side.store()->doubt(side, begin / kCrcBlockBytes * 4, values.size() * 4);
    if ((had_copy || had_values) && !is_again) return false;
    raise(ErrorKind::Corruption,
          "{}: bytes {} to {} are not those that were written: a flipped bit, or another file; `penstock verify` looks "
          "at all of them",
          file.path(), with_commas(begin + i * kCrcBlockBytes), with_commas(begin + i * kCrcBlockBytes + block.size()));
  }
  return true;
}

}  // namespace

BlockReader::BlockReader(const File& file, File side, const StoreChoice& through)
    : file_(file),
      side_(std::move(side)),
      store_(choose_store(through, *file.store())),
      channel_(naming(file.path(), [this] { return store_.open_channel(ChannelMode::MayWait); })) {}

std::span<const std::byte> BlockReader::read(std::uint64_t offset, std::uint64_t size) {
  check_inside(file_, offset, size);
  if (size == 0) return {};
  const std::uint64_t begin = offset / kCrcBlockBytes * kCrcBlockBytes;
  const std::uint64_t stop = std::min(align_up(offset + size, kCrcBlockBytes), file_.bytes);
  const bool checks = side_.store() != nullptr;
  blocks_.resize(stop - begin);
  checks_.resize(checks ? (blocks_.size() + kCrcBlockBytes - 1) / kCrcBlockBytes : 0);
  const auto values = std::as_writable_bytes(std::span(checks_));
  for (const bool is_again : {false, true}) {
    Reads reads;
    plan_read(file_, begin, blocks_.size(), blocks_.data(), reads);
    if (checks) plan_read(side_, begin / kCrcBlockBytes * sizeof(std::uint32_t), values.size(), values.data(), reads);
    wait_for(store_, *channel_, reads);
    if (check_blocks(file_, side_, begin, blocks_, checks_, is_again)) break;
  }
  return std::span<const std::byte>(blocks_).subspan(offset - begin, size);
}

}  // namespace penstock::layout
