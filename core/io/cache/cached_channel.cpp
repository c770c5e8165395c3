#include "core/io/cache/cached_channel.h"

#include "core/base/error.h"
#include "core/io/naming.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

// While disk and network are both under way, neither is waited for any longer than this.
constexpr nanoseconds kTurn = std::chrono::milliseconds(1);
// A ring of io_uring pays only for many reads.
constexpr std::uint64_t kBulkOfReads = 128;
constexpr std::size_t kMostSpare = 256 << 10;  // bytes that a job keeps for the next run

std::uint64_t page_begin(std::uint64_t offset) {
  return offset / kCachePage * kCachePage;
}

std::uint64_t read_end(const Read& read) {
  return read.offset + read.size;
}

bool is_cancelled(const Read& read) {
  return read.cancelled != nullptr && read.cancelled->load(std::memory_order_relaxed);
}

// Whether a read may share its destination with others: what lies between two wanted ranges goes to one place for
// all of a fetch (extents.h), where its bytes do not stay.
bool may_be_overwritten(const Read& read, const ByteStore& store) {
  return read.joined && read.size <= store.near_bytes() + 2 * store.block_bytes();
}

}  // namespace

// A run of neighbours, on its way.
struct CachedChannel::Job {
  std::vector<Read*> run;
  std::uint64_t wanted_begin = 0;
  std::uint64_t wanted_end = 0;
  CachedFile* file = nullptr;  // null: nothing of it is kept
  std::uint64_t begin = 0;     // whole pages around what is wanted
  std::uint64_t end = 0;
  std::vector<CachePiece> pieces;
  std::vector<std::byte> spare;  // of pieces that cannot be read to their destinations
  std::array<std::byte, kCachePage> head;
  std::array<std::byte, kCachePage> tail;
  std::vector<std::uint32_t> sums;      // as they are kept
  std::vector<unsigned char> is_right;  // of each page
  std::vector<Read> reads;              // under way, on one lane
  std::size_t waits = 0;                // of them, not ended
};

CachedChannel::CachedChannel(KeptFiles& files, ByteStore& store, ByteStore& behind, ChannelMode mode)
    : files_(files), store_(store), behind_(behind), mode_(mode), writer_(files.counts()) {}

CachedChannel::~CachedChannel() = default;

void CachedChannel::submit(std::span<Read* const> reads) {
  ended_.reserve(begun_ + queue_.size() + reads.size() + ended_.size());  // handing out cannot fail
  queue_.push(reads);
}

void CachedChannel::wake() {
  woken_.store(true, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  if (local_.channel) local_.channel->wake();
  if (remote_.channel) remote_.channel->wake();
}

std::size_t CachedChannel::hand_out(std::span<Read*> done) {
  const std::size_t count = std::min(done.size(), ended_.size());
  std::copy_n(ended_.front().begin(), count, done.begin());
  ended_.pop(count);
  return count;
}

std::size_t CachedChannel::wait(std::span<Read*> done, nanoseconds timeout) {
  if (!ended_.empty()) return hand_out(done);
  const Clock::time_point began = Clock::now();
  begin_queued();
  for (nanoseconds left = timeout; ended_.empty();) {
    if (woken_.exchange(false, std::memory_order_acquire)) left = nanoseconds(0);
    // What needs no waiting comes first, neighbours after neighbours.
    while (ended_.empty() && collect(local_, nanoseconds(0)) > 0) {
    }
    if (ended_.empty()) (void)collect(remote_, local_.under_way > 0 ? std::min(left, kTurn) : left);
    if (ended_.empty() && remote_.under_way == 0) (void)collect(local_, left);
    if (local_.under_way + remote_.under_way == 0 || left.count() <= 0) break;
    left = std::max(timeout - (Clock::now() - began), nanoseconds(0));
  }
  return hand_out(done);
}

void CachedChannel::begin_queued() {
  while (!queue_.empty()) {
    const std::span<Read* const> run = queue_.front_run(std::max(store_.most_bytes(), kCachePage));
    if (ReadQueue::are_cancelled(run)) {
      ended_.push(run);
    } else {
      begin(run);
    }
    queue_.pop(run.size());
  }
}

void CachedChannel::begin(std::span<Read* const> run) {
  Job* job = nullptr;
  try {
    if (idle_.empty()) {
      idle_.reserve(jobs_.size() + 1);
      jobs_.push_back(std::make_unique<Job>());
      idle_.push_back(jobs_.back().get());
    }
    job = idle_.back();
    job->run.assign(run.begin(), run.end());
    job->wanted_begin = run.front()->offset;
    job->wanted_end = read_end(*run.back());
    job->file = files_.find(*run.front()->file);
    if (!plan_pages(*job)) job->file = nullptr;
  } catch (...) {
    for (Read* read : run) read->fail(present_error());
    ended_.push(run);
    return;
  }
  idle_.pop_back();
  begun_ += run.size();
  if (job->file != nullptr && job->file->is_there.load(std::memory_order_relaxed)) {
    begin_local(*job);
  } else if (mode_ == ChannelMode::NonBlocking) {
    for (Read* read : job->run) read->outcome = Outcome::NotAtHand;
    finish(*job);
  } else {
    begin_remote(*job);
  }
}

// The run's pages and pieces; false: none of its blocks is kept, or it is no part of the file.
bool CachedChannel::plan_pages(Job& job) {
  CachedFile* const file = job.file;
  job.pieces.clear();
  if (file == nullptr || job.wanted_begin >= job.wanted_end || job.wanted_end > file->bytes) return false;
  bool is_kept = false;
  for (std::uint64_t at = job.wanted_begin / kCacheBlock; at * kCacheBlock < job.wanted_end && !is_kept; ++at) {
    is_kept = files_.share().keeps(file->phase, at);
  }
  if (!is_kept) return false;
  if (!file->is_there.load(std::memory_order_relaxed) && ::access(file->sums.path().c_str(), F_OK) == 0) {
    file->is_there.store(true, std::memory_order_relaxed);
  }
  job.begin = page_begin(job.wanted_begin);
  job.end = std::min(page_begin(job.wanted_end + kCachePage - 1), file->bytes);
  const std::uint64_t pages = (job.end - job.begin + kCachePage - 1) / kCachePage;
  job.sums.assign(pages, 0);
  job.is_right.assign(pages, 0);
  plan_pieces(job);
  return true;
}

// Where the bytes of the run's pages go.
void CachedChannel::plan_pieces(Job& job) {
  std::uint64_t spare = 0;
  for (const Read* read : job.run) spare += may_be_overwritten(*read, store_) ? read->size : 0;
  job.spare.resize(spare);
  std::byte* next = job.spare.data();
  if (job.begin < job.wanted_begin) {
    job.pieces.push_back({job.begin, job.wanted_begin, job.head.data(), job.run.front()});
  }
  for (Read* read : job.run) {
    if (read->size == 0) continue;
    const bool is_spare = may_be_overwritten(*read, store_);
    job.pieces.push_back({read->offset, read_end(*read), is_spare ? next : read->destination, read});
    if (is_spare) next += read->size;
  }
  if (job.wanted_end < job.end) job.pieces.push_back({job.wanted_end, job.end, job.tail.data(), job.run.back()});
}

void CachedChannel::set_channel(Lane& lane, std::unique_ptr<Channel> channel) {
  const std::lock_guard lock(mutex_);
  lane.channel.swap(channel);
}

// Few reads need no ring, which costs more than they do.
void CachedChannel::ready_local() {
  const bool is_bulk = mode_ == ChannelMode::MayWait && ++local_reads_ > kBulkOfReads;
  if (local_.channel && (!is_bulk || has_bulk_ || local_.under_way > 0)) return;
  has_bulk_ = is_bulk;
  set_channel(local_, is_bulk ? files_.local().open_channel(mode_)
                              : files_.local().reading_by(Reader::Pread)->open_channel(mode_));
}

void CachedChannel::submit(Lane& lane, Job& job, std::vector<Read>& reads) {
  pointers_.clear();
  for (Read& read : reads) {
    read.owner = &job;
    pointers_.push_back(&read);
  }
  lane.channel->submit(pointers_);
  job.waits = reads.size();
  lane.under_way += reads.size();
}

void CachedChannel::begin_local(Job& job) {
  try {
    ready_local();
    job.reads.clear();
    Read sums;
    sums.file = &job.file->sums;
    sums.offset = job.begin / kCachePage * sizeof(std::uint32_t);
    sums.size = job.sums.size() * sizeof(std::uint32_t);
    sums.destination = reinterpret_cast<std::byte*>(job.sums.data());
    job.reads.push_back(sums);
    for (const CachePiece& piece : job.pieces) {
      Read read;
      read.file = &job.file->data;
      read.offset = piece.begin;
      read.size = piece.end - piece.begin;
      read.destination = piece.at;
      job.reads.push_back(read);
    }
    submit(local_, job, job.reads);
  } catch (...) {  // no memory or no descriptor: as if nothing were kept
    job.reads.clear();
    end_local(job);
  }
}

// After the pages and their sums were read, or could not be.
void CachedChannel::end_local(Job& job) {
  const bool is_read = !job.reads.empty() && std::all_of(job.reads.begin(), job.reads.end(), [](const Read& read) {
    return read.outcome == Outcome::Done;
  });
  std::uint64_t right = 0;
  std::uint64_t wrong = 0;
  if (is_read && std::any_of(job.sums.begin(), job.sums.end(), [](std::uint32_t sum) { return sum != 0; })) {
    found_sums_.clear();
    append_page_sums(job.pieces, job.begin, job.end, found_sums_);
    for (std::size_t i = 0; i < job.sums.size(); ++i) {
      if (job.sums[i] == 0) continue;
      job.is_right[i] = job.sums[i] == found_sums_[i] ? 1 : 0;
      ++(job.is_right[i] != 0 ? right : wrong);
    }
  }
  const bool is_whole = right == job.sums.size();
  if (mode_ == ChannelMode::NonBlocking && !is_whole) {  // the channel that may wait looks again, and counts
    for (Read* read : job.run) read->outcome = Outcome::NotAtHand;
    return finish(job);
  }
  files_.counts().hits.fetch_add(right, std::memory_order_relaxed);
  if (wrong > 0) files_.counts().wrong.fetch_add(wrong, std::memory_order_relaxed);
  if (is_whole) return finish(job);
  begin_remote(job);
}

// One request for all missing pages that are near to one another.
void CachedChannel::begin_remote(Job& job) {
  try {
    if (!remote_.channel) {
      set_channel(remote_, naming(job.run.front()->file->path(), [&] { return behind_.open_channel(mode_); }));
    }
    job.reads.clear();
    if (job.file == nullptr) {
      for (const Read* read : job.run) {
        Read& copy = job.reads.emplace_back(*read);
        copy.retries = 0;
      }
    } else {
      std::uint64_t missing = 0;
      for (std::size_t i = 0; i < job.is_right.size();) {
        if (job.is_right[i] != 0) {
          ++i;
          continue;
        }
        std::size_t stop = i + 1;
        for (std::size_t next = stop; next < job.is_right.size(); ++next) {
          if (job.is_right[next] != 0) continue;
          if ((next - stop) * kCachePage > store_.near_bytes()) break;
          stop = next + 1;
        }
        missing += stop - i;
        add_remote(job, job.begin + i * kCachePage, std::min(job.begin + stop * kCachePage, job.end));
        i = stop;
      }
      files_.counts().misses.fetch_add(missing, std::memory_order_relaxed);
    }
    submit(remote_, job, job.reads);
  } catch (...) {
    for (Read* read : job.run) read->fail(present_error());
    finish(job);
  }
}

// Bytes [begin, end) of the file; at its ends only what is wanted where the page is not kept.
void CachedChannel::add_remote(Job& job, std::uint64_t begin, std::uint64_t end) {
  const auto keeps = [&](std::uint64_t at) { return files_.share().keeps(job.file->phase, at / kCacheBlock); };
  if (!keeps(begin)) begin = std::max(begin, job.wanted_begin);
  if (!keeps(end - 1)) end = std::min(end, job.wanted_end);
  bool joined = false;
  for (const CachePiece& piece : job.pieces) {
    const std::uint64_t first = std::max(piece.begin, begin);
    const std::uint64_t last = std::min(piece.end, end);
    if (first >= last) continue;
    Read& read = job.reads.emplace_back();
    read.file = job.run.front()->file;
    read.offset = first;
    read.size = last - first;
    read.destination = piece.at + (first - piece.begin);
    read.cancelled = piece.read->cancelled;
    read.budget = piece.read->budget;
    read.joined = std::exchange(joined, true);
  }
}

void CachedChannel::end_remote(Job& job) {
  if (job.file == nullptr) {
    for (std::size_t i = 0; i < job.run.size(); ++i) {
      job.run[i]->outcome = job.reads[i].outcome;
      job.run[i]->error = std::move(job.reads[i].error);
      job.run[i]->retries += job.reads[i].retries;
    }
    return finish(job);
  }
  for (const Read& read : job.reads) {
    const auto piece = std::find_if(job.pieces.begin(), job.pieces.end(),
                                    [&](const CachePiece& each) { return each.end > read.offset; });
    Read& wanted = *piece->read;
    wanted.retries += read.retries;
    if (read.outcome == Outcome::Done) continue;
    wanted.outcome = read.outcome;
    wanted.error = read.error;
  }
  for (std::size_t i = 0; i < job.reads.size() && !writer_.is_stopped();) {
    std::size_t stop = i + 1;
    while (stop < job.reads.size() && job.reads[stop].joined) ++stop;
    fill(job, std::span<const Read>(job.reads).subspan(i, stop - i));
    i = stop;
  }
  finish(job);
}

// Keeps the pages of a range that came, but for those of blocks that are not kept.
void CachedChannel::fill(Job& job, std::span<const Read> range) {
  // A read that was cancelled ends as if it were done, and its bytes may be anything.
  const auto came = [](const Read& read) { return read.outcome == Outcome::Done && !is_cancelled(read); };
  if (!std::all_of(range.begin(), range.end(), came)) return;
  const std::uint64_t range_end = read_end(range.back());
  for (std::uint64_t begin = range.front().offset; begin < range_end;) {
    const std::uint64_t block = begin / kCacheBlock;
    const std::uint64_t end = std::min((block + 1) * kCacheBlock, range_end);
    if (files_.share().keeps(job.file->phase, block) && !writer_.write(*job.file, begin, end, job.pieces)) return;
    begin = end;
  }
}

void CachedChannel::finish(Job& job) {
  for (const CachePiece& piece : job.pieces) {
    const Read& read = *piece.read;
    const bool is_whole = piece.begin == read.offset && piece.end == read_end(read);
    if (!is_whole || piece.at == read.destination || read.outcome != Outcome::Done) continue;
    std::memcpy(read.destination, piece.at, read.size);
  }
  job.pieces.clear();
  if (job.spare.capacity() > kMostSpare) std::vector<std::byte>().swap(job.spare);
  ended_.push(job.run);  // there is room: submit()
  begun_ -= job.run.size();
  idle_.push_back(&job);
}

std::size_t CachedChannel::collect(Lane& lane, nanoseconds timeout) {
  if (lane.under_way == 0) return 0;
  std::array<Read*, 32> done;
  const std::size_t count = lane.channel->wait(done, timeout);
  lane.under_way -= count;
  for (std::size_t i = 0; i < count; ++i) {
    Job& job = *static_cast<Job*>(done[i]->owner);
    if (--job.waits > 0) continue;
    try {
      if (&lane == &local_) {
        end_local(job);
      } else {
        end_remote(job);
      }
    } catch (...) {  // without memory; nothing of it is under way
      for (Read* read : job.run) read->fail(present_error());
      finish(job);
    }
  }
  return count;
}

}  // namespace penstock
