#include "layout/packed/packing.h"

#include "core/base/error.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::uint32_t kNoRow = UINT32_MAX;
constexpr std::uint64_t kMostBuffer = std::uint64_t{1} << 24;  // documents
constexpr std::array<std::string_view, 3> kFits = {"best", "first", "next"};
constexpr std::array<std::string_view, 2> kFills = {"pad", "exact"};
constexpr std::array<std::string_view, 4> kLongs = {"split", "truncate", "drop", "refuse"};

template <typename Enum, std::size_t kCount>
Enum parse(std::string_view argument, std::string_view name, const std::array<std::string_view, kCount>& names) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  std::string wanted;
  for (std::size_t i = 0; i < kCount; ++i) {
    wanted += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 < kCount ? ", " : " or ", names[i]);
  }
  raise(ErrorKind::InvalidArgument, "{}=\"{}\": must be {}", argument, excerpt(std::string(name)), wanted);
}

}  // namespace

std::string_view fit_name(Fit fit) noexcept {
  return kFits[static_cast<std::size_t>(fit)];
}

std::string_view fill_name(Fill fill) noexcept {
  return kFills[static_cast<std::size_t>(fill)];
}

std::string_view long_name(LongDocuments what) noexcept {
  return kLongs[static_cast<std::size_t>(what)];
}

Fit parse_fit(std::string_view name) {
  return parse<Fit>("fit", name, kFits);
}

Fill parse_fill(std::string_view name) {
  return parse<Fill>("fill", name, kFills);
}

LongDocuments parse_long(std::string_view name) {
  return parse<LongDocuments>("long", name, kLongs);
}

namespace {

void check_fill(const PackingRule& rule) {
  constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
  const bool has_buffer = rule.fill == Fill::Exact && rule.fit == Fit::Best;
  if (has_buffer ? rule.buffer == 0 || rule.refill == 0 : rule.buffer + rule.refill > 0) {
    raise(kKind, "buffer={}, refill={}: of fill=\"exact\" with fit=\"best\", and there at least 1",
          with_commas(rule.buffer), with_commas(rule.refill));
  }
  if (std::max(rule.buffer, rule.refill) > kMostBuffer) {
    raise(kKind, "buffer={}, refill={}: must be at most {}", with_commas(rule.buffer), with_commas(rule.refill),
          with_commas(kMostBuffer));
  }
  if (rule.fill == Fill::Pad && rule.fit == Fit::Next) {
    raise(kKind, "fit=\"next\": it is of fill=\"exact\": give that too, or fit=\"best\" or \"first\"");
  }
  if (rule.fill == Fill::Pad) return;
  if (rule.fit == Fit::First) raise(kKind, "fit=\"first\": with fill=\"exact\" give \"best\" or \"next\"");
  if (rule.multiple_of != 1) {
    raise(kKind, "multiple_of={}: with fill=\"exact\" there is no padding: leave one of them out",
          with_commas(rule.multiple_of));
  }
  if (rule.max_document == 0 && rule.long_documents != LongDocuments::Truncate) {
    raise(kKind, "long=\"{}\": with fill=\"exact\" documents are cut where their row ends",
          long_name(rule.long_documents));
  }
}

}  // namespace

void check_documents(std::uint64_t first, std::uint64_t count) {
  if (first <= PackedPiece::kMostDocuments && count <= PackedPiece::kMostDocuments - first) return;
  raise(ErrorKind::InvalidArgument, "{} documents are to be packed: {} are the most", with_commas(first + count),
        with_commas(PackedPiece::kMostDocuments));
}

std::uint64_t count_parts(const PackingRule& rule, std::uint64_t document, std::uint64_t length) {
  const std::uint64_t parts = (length - 1) / rule.most() + 1;
  if (parts <= PackedPiece::kMostParts) return parts;
  raise(ErrorKind::InvalidArgument, "document {} of {} records has too many pieces of {}: raise {}",
        with_commas(document), with_commas(length), with_commas(rule.most()),
        rule.max_document == 0 ? "window" : "max_document");
}

void check_packing_rule(const PackingRule& rule) {
  constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
  if (rule.window == 0 || rule.window > kMostPackedWindow) {
    raise(kKind, "window={}: packed rows have 1 to {} records", with_commas(rule.window),
          with_commas(kMostPackedWindow));
  }
  if (rule.group == 0 || rule.group > UINT32_MAX) {
    raise(kKind, "group={}: must be at least 1 and below 2^32 documents", with_commas(rule.group));
  }
  if (rule.multiple_of == 0) raise(kKind, "multiple_of=0: must be at least 1");
  if (rule.window % rule.multiple_of != 0) {
    raise(kKind, "multiple_of={}: the window {} is no multiple of it", with_commas(rule.multiple_of),
          with_commas(rule.window));
  }
  check_fill(rule);
  if (rule.max_documents == 1 && rule.fill == Fill::Pad) {
    raise(kKind, "max_documents=1: a row that a document does not fill has two sequences: must be at least 2");
  }
  if (rule.max_document == 0) return;
  if (rule.max_document > rule.window) {
    raise(kKind, "max_document={}: a row has {} records: must be at most these", with_commas(rule.max_document),
          with_commas(rule.window));
  }
  if (rule.long_documents != LongDocuments::Split && rule.long_documents != LongDocuments::Truncate) {
    raise(kKind, "cut=\"{}\": must be \"split\" or \"truncate\"", long_name(rule.long_documents));
  }
}

Packer::Packer(const PackingRule& rule)
    : rule_((check_packing_rule(rule), rule)),
      row_units_(static_cast<std::uint32_t>(rule.window / rule.multiple_of)),
      rooms_(rule.fit == Fit::Best ? row_units_ : 0) {
  if (rule.fit == Fit::Best) heap_of_room_.assign(std::size_t{row_units_} + 1, kNoRow);
  if (rule.max_documents > 0) last_of_room_.assign(std::size_t{row_units_} + 1, kNoRow);
}

std::uint32_t Packer::units(std::uint32_t length) const noexcept {
  if (rule_.multiple_of == 1) return length;
  return static_cast<std::uint32_t>((length + rule_.multiple_of - 1) / rule_.multiple_of);
}

void Packer::add(std::uint64_t first_document, std::span<const std::uint64_t> lengths, PackedRows& out) {
  check_documents(first_document, lengths.size());
  for (std::size_t begin = 0; begin < lengths.size(); begin += rule_.group) {
    const std::size_t count = std::min<std::size_t>(rule_.group, lengths.size() - begin);
    pack_group(first_document + begin, lengths.subspan(begin, count), out);
  }
}

void Packer::pack_group(std::uint64_t first_document, std::span<const std::uint64_t> lengths, PackedRows& out) {
  cut(first_document, lengths, out);
  sort();
  rows_ = 0;
  row_of_.resize(pieces_.size());
  if (rule_.fit == Fit::Best) {
    fit_best();
  } else {
    fit_first();
  }
  append(out);
}

// The group's pieces, in the order of documents.
void Packer::cut(std::uint64_t first_document, std::span<const std::uint64_t> lengths, PackedRows& out) {
  pieces_.clear();
  lengths_.clear();
  const std::uint64_t most = rule_.most();
  const auto take = [&](std::uint64_t document, std::uint64_t part, std::uint64_t length) {
    pieces_.push_back(PackedPiece::of(document, part));
    lengths_.push_back(static_cast<std::uint32_t>(length));
  };
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::uint64_t document = first_document + i;
    const std::uint64_t length = lengths[i];
    if (length == 0) {
      ++out.left_out;
    } else if (length <= most) {
      take(document, 0, length);
    } else if (rule_.long_documents == LongDocuments::Split) {
      const std::uint64_t parts = count_parts(rule_, document, length);
      if (pieces_.size() + parts >= kNoRow) {
        raise(ErrorKind::InvalidArgument, "{} documents from {} on have too many pieces of {}: lower group",
              with_commas(lengths.size()), with_commas(first_document), with_commas(most));
      }
      for (std::uint64_t part = 0; part < parts; ++part) take(document, part, std::min(most, length - part * most));
    } else if (rule_.long_documents == LongDocuments::Truncate) {
      take(document, 0, most);
      out.cut += length - most;
    } else if (rule_.long_documents == LongDocuments::Drop) {
      ++out.left_out;
      out.cut += length;
    } else {
      raise(ErrorKind::InvalidArgument,
            "document {} has {} records, a row {}: raise window, or say by long= what becomes of it (\"split\", "
            "\"truncate\", \"drop\")",
            with_commas(document), with_commas(length), with_commas(most));
    }
  }
}

// By decreasing length, equal ones in their order.
void Packer::sort() {
  constexpr unsigned kDigitBits = 12;
  constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
  const std::size_t count = pieces_.size();
  sorted_.resize(count);
  std::iota(sorted_.begin(), sorted_.end(), 0U);
  if (count < kDigits / 4) {
    std::stable_sort(sorted_.begin(), sorted_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return lengths_[a] > lengths_[b]; });
    return;
  }
  scratch_.resize(count);
  const auto window = static_cast<std::uint32_t>(rule_.window);
  for (unsigned shift = 0; shift < 32 && window >> shift != 0; shift += kDigitBits) {
    std::array<std::uint32_t, kDigits + 1> begins{};
    const auto digit = [&](std::uint32_t piece) { return (window - lengths_[piece]) >> shift & (kDigits - 1); };
    for (const std::uint32_t piece : sorted_) ++begins[digit(piece) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const std::uint32_t piece : sorted_) scratch_[begins[digit(piece)]++] = piece;
    sorted_.swap(scratch_);
  }
}

// Two heaps as one; the children of each row on the way change sides, which keeps the paths short on average.
std::uint32_t Packer::merge(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t root = kNoRow;
  std::uint32_t* link = &root;
  while (a != kNoRow && b != kNoRow) {
    if (b < a) std::swap(a, b);
    *link = a;
    const std::uint32_t right = right_[a];
    right_[a] = left_[a];
    link = &left_[a];
    a = right;
  }
  *link = a != kNoRow ? a : b;
  return root;
}

void Packer::push(std::vector<std::uint32_t>& heaps, std::uint32_t room, std::uint32_t row) noexcept {
  left_[row] = kNoRow;
  right_[row] = kNoRow;
  heaps[room] = merge(heaps[room], row);
}

std::uint32_t Packer::pop(std::vector<std::uint32_t>& heaps, std::uint32_t room) noexcept {
  const std::uint32_t row = heaps[room];
  heaps[room] = merge(left_[row], right_[row]);
  return row;
}

void Packer::begin_rows() {
  left_.clear();
  right_.clear();
  room_of_.clear();
  count_of_.clear();
}

std::uint32_t Packer::new_row() {
  left_.push_back(kNoRow);
  right_.push_back(kNoRow);
  room_of_.push_back(row_units_);
  count_of_.push_back(0);
  return rows_++;
}

// The first row with one place left that a piece of this size fills.
std::uint32_t Packer::last_row(std::uint32_t wanted) const noexcept {
  return last_of_room_.empty() ? kNoRow : last_of_room_[wanted];
}

bool Packer::is_last(std::uint32_t row) const noexcept {
  return rule_.max_documents != 0 && count_of_[row] + 1 == rule_.max_documents;
}

void Packer::fit_best() {
  begin_rows();
  for (const std::uint32_t piece : sorted_) {
    const std::uint32_t wanted = units(lengths_[piece]);
    const std::uint64_t room = rooms_.least(wanted);
    const std::uint32_t last = last_row(wanted);
    std::uint32_t row = kNoRow;
    if (last != kNoRow && (room != wanted || last < heap_of_room_[wanted])) {
      row = pop(last_of_room_, wanted);
    } else if (room == Rooms::kNone) {
      row = new_row();
    } else {
      row = pop(heap_of_room_, static_cast<std::uint32_t>(room));
      if (heap_of_room_[room] == kNoRow) rooms_.clear(room);
    }
    row_of_[piece] = row;
    ++count_of_[row];
    const std::uint32_t left_over = room_of_[row] -= wanted;
    if (left_over == 0) continue;
    if (is_last(row)) {
      push(last_of_room_, left_over, row);
      continue;
    }
    if (heap_of_room_[left_over] == kNoRow) rooms_.set(left_over);
    push(heap_of_room_, left_over, row);
  }
  end_rows();
}

// For the next group.
void Packer::end_rows() {
  for (const std::uint32_t room : room_of_) {
    if (!last_of_room_.empty()) last_of_room_[room] = kNoRow;
    if (room == 0 || heap_of_room_.empty() || heap_of_room_[room] == kNoRow) continue;
    heap_of_room_[room] = kNoRow;
    rooms_.clear(room);
  }
}

void Packer::fit_first() {
  begin_rows();
  const std::size_t leaves = std::bit_ceil(std::max<std::size_t>(pieces_.size(), 1));
  most_rooms_.assign(2 * leaves, row_units_);  // a row that has not begun has all of its room
  const auto set_room = [&](std::uint32_t row, std::uint32_t room) {
    std::size_t node = leaves + row;
    most_rooms_[node] = room;
    while (node > 1) {
      node /= 2;
      const std::uint32_t most = std::max(most_rooms_[2 * node], most_rooms_[2 * node + 1]);
      if (most_rooms_[node] == most) break;
      most_rooms_[node] = most;
    }
  };
  for (const std::uint32_t piece : sorted_) {
    const std::uint32_t wanted = units(lengths_[piece]);
    std::size_t node = 1;
    while (node < leaves) node = 2 * node + (most_rooms_[2 * node] >= wanted ? 0 : 1);
    auto row = static_cast<std::uint32_t>(node - leaves);
    if (last_row(wanted) < row) {
      row = pop(last_of_room_, wanted);
      room_of_[row] = 0;
      row_of_[piece] = row;
      ++count_of_[row];
      continue;
    }
    if (row == rows_) row = new_row();
    row_of_[piece] = row;
    ++count_of_[row];
    room_of_[row] -= wanted;
    const bool is_closed = room_of_[row] > 0 && is_last(row);
    if (is_closed) push(last_of_room_, room_of_[row], row);
    set_room(row, is_closed ? 0 : room_of_[row]);
  }
  end_rows();
}

void Packer::append(PackedRows& out) {
  const std::uint64_t before = out.pieces.size();
  const std::size_t first_row = out.row_ends.size();
  out.row_ends.resize(first_row + rows_, 0);
  std::uint64_t* const ends = out.row_ends.data() + first_row;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    ++ends[row_of_[piece]];
    out.records += lengths_[piece];
  }
  std::uint64_t at = before;
  for (std::uint32_t row = 0; row < rows_; ++row) at += std::exchange(ends[row], at);
  out.pieces.resize(at);
  for (const std::uint32_t piece : sorted_) out.pieces[ends[row_of_[piece]]++] = pieces_[piece];
}

}  // namespace penstock::layout
