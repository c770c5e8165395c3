#include "layout/packed/exact_packing.h"

#include "core/base/error.h"

#include <algorithm>

namespace penstock::layout {
namespace {

constexpr std::uint32_t kNobody = UINT32_MAX;

}  // namespace

// ---- the buffer

ExactPacker::Buffer::Buffer(std::uint64_t window)
    : window_(window), lengths_(window), last_of_length_(window == 0 ? 0 : window + 1, kNobody) {}

void ExactPacker::Buffer::push(const Waiting& waiting) {
  ++size_;
  if (waiting.length > window_) {
    long_.push({pushed_++, waiting});
    return;
  }
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(waiting_.size()));
    waiting_.emplace_back();
    next_.push_back(kNobody);
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  waiting_[place] = waiting;
  std::uint32_t& last = last_of_length_[waiting.length];
  if (last == kNobody) {
    next_[place] = place;
    lengths_.set(waiting.length);
  } else {
    next_[place] = std::exchange(next_[last], place);
  }
  last = place;
}

// The first to come of those of a length.
void ExactPacker::Buffer::pop(std::uint64_t length, Waiting& out) {
  std::uint32_t& last = last_of_length_[length];
  const std::uint32_t first = next_[last];
  out = waiting_[first];
  free_.push_back(first);
  --size_;
  if (first != last) {
    next_[last] = next_[first];
    return;
  }
  last = kNobody;
  lengths_.clear(length);
}

std::uint64_t ExactPacker::Buffer::longest() const noexcept {
  return lengths_.most(window_);
}

bool ExactPacker::Buffer::pop_longest(std::uint64_t to, Waiting& out) {
  const std::uint64_t length = lengths_.most(to);
  if (length == Rooms::kNone) return false;
  pop(length, out);
  return true;
}

bool ExactPacker::Buffer::pop_shortest(std::uint64_t from, Waiting& out) {
  const std::uint64_t length = lengths_.least(from);
  if (length != Rooms::kNone) {
    pop(length, out);
    return true;
  }
  if (long_.empty()) return false;
  out = long_.top().waiting;
  long_.pop();
  --size_;
  return true;
}

// ---- rows

ExactPacker::ExactPacker(const PackingRule& rule)
    : rule_((check_packing_rule(rule), rule)), room_(rule.window), buffer_(rule.fit == Fit::Best ? rule.window : 0) {}

void ExactPacker::add(std::uint64_t first_document, std::span<const std::uint64_t> lengths, PackedRows& out) {
  check_documents(first_document, lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::uint64_t document = first_document + i;
    const std::uint64_t length = lengths[i];
    if (length == 0) {
      ++out.left_out;
    } else if (rule_.max_document == 0 || length <= rule_.max_document) {
      take({PackedPiece::of(document, 0), length, 1}, out);
    } else if (rule_.long_documents == LongDocuments::Truncate) {
      take({PackedPiece::of(document, 0), rule_.max_document, 1}, out);
      out.cut += length - rule_.max_document;
    } else {
      const std::uint64_t most = rule_.max_document;
      const std::uint64_t parts = count_parts(rule_, document, length);
      for (std::uint64_t part = 0; part < parts; ++part) {
        take({PackedPiece::of(document, part), std::min(most, length - part * most), parts}, out);
      }
    }
  }
}

void ExactPacker::take(const Waiting& waiting, PackedRows& out) {
  if (rule_.fit == Fit::Best) {
    buffer_.push(waiting);
    if (++came_ < rule_.refill) return;
    came_ = 0;
    while (buffer_.size() >= rule_.buffer) {
      if (!put_best(out)) raise_too_few();
    }
    return;
  }
  if (has_one_place() && waiting.length < room_) {
    row_.push_back(waiting);
    raise_too_few();
  }
  put(waiting, out);
}

bool ExactPacker::has_one_place() const noexcept {
  return rule_.max_documents != 0 && row_.size() + 1 == rule_.max_documents;
}

// Puts one of the buffer into the row; false, and none is taken, where the row's last place needs a longer one.
bool ExactPacker::put_best(PackedRows& out) {
  Waiting found;
  const bool is_found = has_one_place() ? buffer_.pop_shortest(room_, found)
                                        : buffer_.pop_longest(room_, found) || buffer_.pop_shortest(1, found);
  if (is_found) put(found, out);
  return is_found;
}

void ExactPacker::put(const Waiting& waiting, PackedRows& out) {
  const std::uint64_t length = std::min(waiting.length, room_);
  out.cut += waiting.length - length;
  row_.push_back(waiting);
  room_ -= length;
  if (room_ > 0) return;
  for (const Waiting& each : row_) out.pieces.push_back(each.piece);
  out.row_ends.push_back(out.pieces.size());
  out.records += rule_.window;
  row_.clear();
  room_ = rule_.window;
}

void ExactPacker::leave_row() {
  left_.insert(left_.end(), row_.begin(), row_.end());
  row_.clear();
  room_ = rule_.window;
}

void ExactPacker::end_shard(PackedRows& out) {
  came_ = 0;
  while (buffer_.size() > 0) {
    if (put_best(out)) continue;
    const bool is_begun = !row_.empty();
    leave_row();
    Waiting rest;
    if (!is_begun && buffer_.pop_shortest(1, rest)) left_.push_back(rest);  // one place a row, which it does not fill
  }
  leave_row();
  std::sort(left_.begin(), left_.end(),
            [](const Waiting& a, const Waiting& b) { return a.piece.document() < b.piece.document(); });
  for (std::size_t i = 0; i < left_.size();) {
    const std::size_t first = i;
    for (; i < left_.size() && left_[i].piece.document() == left_[first].piece.document(); ++i) {
      out.cut += left_[i].length;
    }
    if (i - first == left_[first].parts) ++out.left_out;
  }
  left_.clear();
}

void ExactPacker::raise_too_few() const {
  const bool best = rule_.fit == Fit::Best;
  const std::string after =
      row_.empty() ? "" : fmt::format(", after document {},", with_commas(row_.back().piece.document()));
  std::uint64_t records = 0;
  for (const Waiting& each : row_) records += each.length;
  const std::string has =
      fmt::format("max_documents={}: a row{} has {} of {} records and {} place left", with_commas(rule_.max_documents),
                  after, with_commas(records), with_commas(rule_.window), best ? "one" : "no");
  if (!best) raise(ErrorKind::InvalidArgument, "{}: raise max_documents", has);
  raise(ErrorKind::InvalidArgument,
        "{}, and the longest of the {} documents in the buffer has {}: raise max_documents or buffer", has,
        with_commas(buffer_.size()), with_commas(buffer_.longest()));
}

}  // namespace penstock::layout
