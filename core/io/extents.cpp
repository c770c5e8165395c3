#include "core/io/extents.h"

#include "core/base/align.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace penstock {
namespace {

std::uint64_t end_of(const Read& read) {
  return read.offset + read.size;
}

// Whether a range that begins at `next` is near one that ends at `end`, in whole blocks.
bool is_near(std::uint64_t end, std::uint64_t next, const ExtentRules& rules) {
  if (next <= end) return true;
  const std::uint64_t block_end = align_up(end, rules.block_bytes);
  const std::uint64_t block_begin = next / rules.block_bytes * rules.block_bytes;
  return block_begin <= block_end || block_begin - block_end <= rules.near_bytes;
}

// The gap between the end of a request and the next read of it.
std::uint64_t gap(std::uint64_t end, const Read& next) {
  return next.offset > end ? next.offset - end : 0;
}

// Whether enough of a request is wanted.
bool is_worth(std::uint64_t bytes, std::uint64_t unwanted, const ExtentRules& rules) {
  return unwanted == 0 || unwanted <= bytes / 100 * rules.most_unwanted + bytes % 100 * rules.most_unwanted / 100;
}

// The first error stays; a miss does not hide it.
void take_outcome(const Read& piece, Read& read) {
  if (read.outcome == Outcome::Failed) return;
  read.outcome = piece.outcome;
  read.error = piece.error;
}

}  // namespace

void Extents::plan(std::span<Read*> reads, const ExtentRules& rules) {
  pieces_.clear();
  places_.clear();
  copies_.clear();
  owners_.clear();
  requests_ = 0;
  std::sort(reads.begin(), reads.end(), [](const Read* a, const Read* b) {
    if (a->file != b->file) return std::less<const File*>()(a->file, b->file);
    return a->offset != b->offset ? a->offset < b->offset : a->size > b->size;
  });
  // Twice the reads is the most there can be: before each at most one piece that is a gap. No piece moves once the
  // first of them is submitted.
  pieces_.reserve(2 * reads.size());
  unwanted_.resize(rules.near_bytes + 2 * rules.block_bytes);
  std::size_t first_place = 0;
  std::uint64_t begin = 0;  // of the present request …
  std::uint64_t end = 0;    // … and how far it goes
  std::uint64_t unwanted = 0;
  const File* file = nullptr;
  for (Read* read : reads) {
    if (read->size == 0) continue;
    const bool fits = end_of(*read) <= end || (end_of(*read) - begin <= rules.most_bytes &&
                                               is_worth(end_of(*read) - begin, unwanted + gap(end, *read), rules));
    if (read->file != file || !is_near(end, read->offset, rules) || !fits) {
      file = read->file;
      begin = end = read->offset;
      unwanted = 0;
      first_place = places_.size();
      ++requests_;
    } else if (read->offset > end) {
      unwanted += gap(end, *read);
      add_piece(*read, end, read->offset, unwanted_.data(), true);
      end = read->offset;
    }
    const std::uint64_t inside = std::min(end, end_of(*read)) - read->offset;  // read already, for others
    if (inside > 0) copies_.push_back({read, inside, first_place, places_.size()});
    if (end_of(*read) <= end) continue;
    places_.push_back({end, end_of(*read), read->destination + inside, pieces_.size()});
    owners_.emplace_back(pieces_.size(), read);
    add_piece(*read, end, end_of(*read), read->destination + inside, end > begin);
    end = end_of(*read);
  }
}

void Extents::add_piece(const Read& read, std::uint64_t begin, std::uint64_t end, std::byte* to, bool joined) {
  Read& piece = pieces_.emplace_back(read);
  piece.offset = begin;
  piece.size = end - begin;
  piece.destination = to;
  piece.joined = joined;
}

void Extents::complete() {
  for (const auto& [piece, read] : owners_) {
    if (pieces_[piece].outcome != Outcome::Done) take_outcome(pieces_[piece], *read);
  }
  // In the order of the reads, so that what is copied from has been copied to before.
  for (const Copy& copy : copies_) finish(copy);
}

// The head of a read, out of the places that have it.
void Extents::finish(const Copy& copy) {
  const std::uint64_t begin = copy.read->offset;
  const std::uint64_t end = begin + copy.bytes;
  for (std::size_t i = copy.last; i-- > copy.first;) {
    const Placed& place = places_[i];
    if (place.end <= begin) break;
    const std::uint64_t from = std::max(begin, place.begin);
    const std::uint64_t to = std::min(end, place.end);
    if (from >= to) continue;
    if (pieces_[place.piece].outcome != Outcome::Done) take_outcome(pieces_[place.piece], *copy.read);
    std::memcpy(copy.read->destination + (from - begin), place.to + (from - place.begin), to - from);
  }
}

}  // namespace penstock
