#include "writer/shuffle/put_aside.h"

#include "core/base/error.h"
#include "writer/files/scratch_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kMaxRangeBuffer = 1 << 20;
constexpr std::uint64_t kReadBackBytes = 1 << 20;

struct TableEntry {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  DigestBytes digest{};
};
static_assert(sizeof(TableEntry) == 32);

// Of one bucket, in one file.
struct Part {
  ScratchFile file;
  TableEntry entry;
};

void load(const Part& part, std::byte* to, Progress& progress) {
  Digest digest;
  for (std::uint64_t at = 0; at < part.entry.bytes;) {
    const std::span piece(to + at, std::min(kReadBackBytes, part.entry.bytes - at));
    part.file.read_at(part.entry.offset + at, piece);
    digest.update(piece);
    at += piece.size();
    progress.passed(piece.size());
  }
  if (digest.bytes() == part.entry.digest) return;
  raise(ErrorKind::Corruption, "{}: what was read back is not what was written", part.file.shown());
}

}  // namespace

std::size_t bucket_of(const std::vector<BucketRange>& buckets, std::uint64_t destination) noexcept {
  const auto found = std::upper_bound(buckets.begin(), buckets.end(), destination,
                                      [](std::uint64_t at, const BucketRange& each) { return at < each.end; });
  if (found == buckets.end() || destination < found->begin) return buckets.size();
  return static_cast<std::size_t>(found - buckets.begin());
}

AsidePlanner::AsidePlanner(const std::vector<BucketRange>& buckets, std::uint64_t memory_bytes)
    : buckets_(buckets), memory_bytes_(memory_bytes) {
  plan_.large_above = memory_bytes / 8;
  for (const BucketRange& each : buckets) plan_.buckets.push_back({each.begin, each.end});
}

void AsidePlanner::add(std::uint64_t destination, std::uint64_t bytes) {
  const std::size_t number = bucket_of(buckets_, destination);
  if (number == buckets_.size()) return;
  BucketPlan::Bucket& bucket = plan_.buckets[number];
  const bool is_large = bytes > plan_.large_above;
  ++bucket.items;
  bucket.bytes += sizeof(ItemHeader) + (is_large ? sizeof(DigestBytes) : bytes);
  if (is_large) large_bytes_ += bytes;
}

BucketPlan AsidePlanner::plan() const {
  BucketPlan plan = plan_;
  const std::uint64_t count = std::max<std::uint64_t>(1, plan.buckets.size());
  plan.buffer_bytes = std::clamp<std::uint64_t>(memory_bytes_ / 2 / count, 1, kMaxRangeBuffer);
  plan.large_offset = plan.buckets.size() * sizeof(TableEntry);
  for (BucketPlan::Bucket& each : plan.buckets) {
    each.offset = plan.large_offset;
    plan.large_offset += each.bytes;
  }
  plan.scratch_bytes = plan.large_offset + large_bytes_;
  return plan;
}

void write_aside(const std::string& path, BucketPlan plan, bool is_synced, const std::function<void(Buckets&)>& put) {
  const std::string partial = path + "." + unique_suffix();
  ScratchFile file = ScratchFile::named(partial, plan.scratch_bytes);
  try {
    Buckets buckets(std::move(plan), std::move(file));
    put(buckets);
    buckets.finish();
    std::vector<TableEntry> table;
    for (std::size_t i = 0; i < buckets.plan().buckets.size(); ++i) {
      const BucketPlan::Bucket& each = buckets.plan().buckets[i];
      table.push_back({each.offset, each.bytes, buckets.digests()[i]});
    }
    buckets.file().write_at(0, std::as_bytes(std::span(table)));
    if (is_synced) buckets.file().sync();
    if (std::rename(partial.c_str(), path.c_str()) != 0) raise_system(errno, "rename", partial);
  } catch (...) {
    ::unlink(partial.c_str());
    throw;
  }
}

void AsideFiles::take(std::size_t number, const BucketRange& range, Progress& progress,
                      const std::function<void(TakenItem&)>& take) const {
  std::vector<std::uint64_t> ends;
  std::vector<TableEntry> entries;
  std::uint64_t bytes = 0;
  for (const std::string& path : paths_) {
    TableEntry entry;
    ScratchFile::existing(path).read_at(number * sizeof(entry), std::as_writable_bytes(std::span(&entry, 1)));
    entries.push_back(entry);
    ends.push_back(bytes += entry.bytes);
  }
  const auto loaded = std::make_unique_for_overwrite<std::byte[]>(bytes);
  for (std::size_t i = 0; i < paths_.size(); ++i) {  // one open file at a time: there may be thousands
    load({ScratchFile::existing(paths_[i]), entries[i]}, loaded.get() + ends[i] - entries[i].bytes, progress);
  }
  const auto file_of = [&](std::uint64_t offset) {
    const auto at = std::upper_bound(ends.begin(), ends.end(), offset) - ends.begin();
    return std::make_shared<const ScratchFile>(ScratchFile::existing(paths_[static_cast<std::size_t>(at)]));
  };
  take_items({loaded.get(), bytes}, range.begin, range.end, file_of, progress, take);
}

}  // namespace penstock::writer
