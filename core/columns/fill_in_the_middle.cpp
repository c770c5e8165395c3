#include "core/columns/fill_in_the_middle.h"

#include "core/base/error.h"
#include "core/columns/leaf_column.h"
#include "core/columns/row_draws.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace penstock {
namespace {

constexpr std::uint64_t kSentinels = 3;
constexpr std::uint64_t kPurpose = 0x66696d;  // "fim"

const Leaf& token_leaf(const FillInTheMiddleSpec& spec, const SourceInfo& source) {
  const Leaf& leaf = find_leaf(source, spec.field);
  if (!leaf.is_integer() || !leaf.dims.empty()) {
    raise(ErrorKind::InvalidArgument, "FillInTheMiddle: field {} holds no single integer a record", leaf.name);
  }
  if (source.fields_apart) {
    raise(ErrorKind::InvalidArgument, "FillInTheMiddle: {}: its fields lie apart: there are no records to move",
          source.path);
  }
  return leaf;
}

void check_token(const char* name, std::int64_t token, const Leaf& leaf) {
  const unsigned bits = 8 * leaf.item_bytes - (leaf.kind == 'i' ? 1 : 0);
  if (token >= 0 && (bits >= 63 || token >> bits == 0)) return;
  raise(ErrorKind::InvalidArgument, "FillInTheMiddle({}={}): no value of field {}, {}", name, token, leaf.name,
        ScalarType{leaf.kind, leaf.item_bytes}.name());
}

void check_rate(const char* name, double rate) {
  if (rate >= 0 && rate <= 1) return;
  raise(ErrorKind::InvalidArgument, "FillInTheMiddle({}={}): must be from 0 to 1", name, rate);
}

// Memory of the calling thread for a part of a piece.
std::byte* piece_memory(std::uint64_t bytes) {
  thread_local std::vector<std::byte> memory;
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

}  // namespace

FillInTheMiddle::FillInTheMiddle(FillInTheMiddleSpec spec, const SourceInfo& source)
    : spec_(std::move(spec)), place_(token_leaf(spec_, source), source), packed_(source.packed_multiple > 0) {
  const Leaf& leaf = find_leaf(source, spec_.field);
  check_token("prefix", spec_.prefix, leaf);
  check_token("middle", spec_.middle, leaf);
  check_token("suffix", spec_.suffix, leaf);
  if (spec_.prefix == spec_.middle || spec_.middle == spec_.suffix || spec_.suffix == spec_.prefix) {
    raise(ErrorKind::InvalidArgument, "FillInTheMiddle: prefix={}, middle={}, suffix={}: must be three tokens",
          spec_.prefix, spec_.middle, spec_.suffix);
  }
  check_rate("rate", spec_.rate);
  check_rate("spm_rate", spec_.spm_rate);
  if (!source.shape.ragged && !packed_) documents_.emplace(spec_.bounds, 0, source);
}

Parts FillInTheMiddle::parts() const noexcept {
  const bool by_spans = packed_ || (documents_ && spec_.bounds.by == DocumentBounds::By::Spans);
  return by_spans ? Parts::Records | Parts::Spans : Parts::Records;
}

template <typename Visit>
void FillInTheMiddle::each_piece(const Row& row, const Visit& visit) const {
  if (documents_) return documents_->for_each(row, visit);
  if (!packed_) return visit(0, row.length);
  for (const Span& span : row.spans) visit(span.start, span.stop);
}

bool FillInTheMiddle::has_token(const Row& row, std::uint64_t record, const std::optional<std::int64_t>& token) const {
  if (!token) return false;
  bool found = false;
  with_unsigned(place_.item_bytes, [&]<typename T>(T value) {
    std::memcpy(&value, place_.first(row) + record * place_.stride_bytes, sizeof value);
    found = value == static_cast<T>(*token);
  });
  return found;
}

void FillInTheMiddle::rearrange(Row& row) const {
  RowDraws draws(spec_.seed, row, kPurpose);
  each_piece(row, [&](std::uint64_t begin, std::uint64_t end) {
    // As many draws for each piece, whatever comes of them.
    const bool is_chosen = draws.happens(spec_.rate);
    const bool is_spm = draws.happens(spec_.spm_rate);
    RowDraws cuts = draws;
    draws.next();
    draws.next();
    if (!is_chosen) return;
    if (begin < end && has_token(row, begin, spec_.first_stays)) ++begin;
    if (begin < end && has_token(row, end - 1, spec_.last_stays)) --end;
    if (end - begin <= kSentinels) return;
    const std::uint64_t records = end - begin - kSentinels;
    const std::uint64_t one = cuts.below(records + 1);
    const std::uint64_t other = cuts.below(records + 1);
    permute(row.records + begin * place_.stride_bytes, records, std::min(one, other), std::max(one, other), is_spm);
  });
}

// `piece` has three records more; [begin, end) of them are the middle. Of PSM the middle is copied aside and of SPM the
// suffix, a third of the piece on average; the rest moves within it.
void FillInTheMiddle::permute(std::byte* piece, std::uint64_t records, std::uint64_t begin, std::uint64_t end,
                              bool is_spm) const {
  const std::uint64_t stride = place_.stride_bytes;
  const std::uint64_t aside_begin = is_spm ? end : begin;
  const std::uint64_t aside_bytes = ((is_spm ? records : end) - aside_begin) * stride;
  std::byte* const marks = piece_memory(aside_bytes + kSentinels * stride);  // prefix, suffix, middle …
  std::byte* const aside = marks + kSentinels * stride;                      // … and what is copied
  const auto mark = [&](std::uint64_t number, std::int64_t token, std::uint64_t before) {
    std::byte* const to = marks + number * stride;
    std::memcpy(to, piece + std::min(before, records - 1) * stride, stride);
    std::memcpy(to + place_.offset_bytes, &token, place_.item_bytes);
  };
  mark(0, spec_.prefix, is_spm ? end : 0);
  mark(1, spec_.suffix, end);
  mark(2, spec_.middle, is_spm ? 0 : begin);
  std::memcpy(aside, piece + aside_begin * stride, aside_bytes);
  const std::uint64_t suffix = records - end;
  const auto move = [&](std::uint64_t to, std::uint64_t from, std::uint64_t count) {
    std::memmove(piece + to * stride, piece + from * stride, count * stride);
  };
  const auto put = [&](std::uint64_t to, const std::byte* from, std::uint64_t bytes) {
    std::memcpy(piece + to * stride, from, bytes);
  };
  if (is_spm) {
    move(3 + suffix, 0, end);
    put(0, marks, 2 * stride);
    put(2, aside, aside_bytes);
    put(2 + suffix, marks + 2 * stride, stride);
  } else {
    move(2 + begin, end, suffix);
    move(1, 0, begin);
    put(0, marks, stride);
    put(1 + begin, marks + stride, stride);
    put(2 + begin + suffix, marks + 2 * stride, stride);
    put(3 + begin + suffix, aside, aside_bytes);
  }
}

}  // namespace penstock
