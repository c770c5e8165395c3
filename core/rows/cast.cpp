#include "core/rows/cast.h"

#include "core/base/error.h"
#include "core/rows/cast_runs.h"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace penstock {
namespace {

// ---- axes: records, then the leaf's own; those that follow on one another in memory are one.

struct Axis {
  std::uint64_t count;
  std::uint64_t stride;
};
using Axes = boost::container::small_vector<Axis, 4>;

void append_axis(Axes& axes, Axis axis) {
  if (axis.count == 1 && !axes.empty()) return;
  if (!axes.empty() && (axes.back().count == 1 || axes.back().stride == axis.count * axis.stride)) {
    axes.back() = {axes.back().count * axis.count, axis.stride};
  } else {
    axes.push_back(axis);
  }
}

/// Calls `visit(in, stride, count)` for every run of the innermost axis, in order; stops at false.
template <typename Visit>
bool for_each_run(std::span<const Axis> axes, const std::byte* in, const Visit& visit) {
  if (axes.size() == 1) return visit(in, axes[0].stride, axes[0].count);
  for (std::uint64_t i = 0; i < axes[0].count; ++i) {
    if (!for_each_run(axes.subspan(1), in + i * axes[0].stride, visit)) return false;
  }
  return true;
}

Axes axes_of(const Leaf& leaf, std::uint64_t stored_record_bytes, std::uint64_t count) {
  Axes axes;
  append_axis(axes, {count, stored_record_bytes});
  for (std::size_t i = 0; i < leaf.dims.size(); ++i) append_axis(axes, {leaf.dims[i], leaf.stride_bytes[i]});
  return axes;
}

// ---- words

/// An integer of any stored type, wide enough for all of them.
struct Wide {
  bool negative;
  std::uint64_t magnitude;
};

Wide load_integer(const Leaf& leaf, const std::byte* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, leaf.item_bytes);
  const unsigned unused = 64 - 8 * leaf.item_bytes;
  if (leaf.kind == 'i' && (bits >> (8 * leaf.item_bytes - 1)) != 0) {
    bits |= unused == 0 ? 0 : ~std::uint64_t{0} << (64 - unused);
    return {true, ~bits + 1};
  }
  return {false, bits};
}

bool fits(Wide value, ScalarType to) {
  const unsigned bits = 8 * to.bytes;
  if (to.kind == 'u') return !value.negative && (bits == 64 || value.magnitude >> bits == 0);
  const std::uint64_t limit = std::uint64_t{1} << (bits - 1);
  return value.negative ? value.magnitude <= limit : value.magnitude < limit;
}

/// Finds the first value that does not fit and throws. Slow; only after a run said that there is one.
[[noreturn]] void refuse_value(const Leaf& leaf, const std::byte* records, std::uint64_t stored_record_bytes,
                               std::uint64_t count, ScalarType type) {
  for (std::uint64_t record = 0; record < count; ++record) {
    const Axes axes = axes_of(leaf, stored_record_bytes, 1);
    const std::byte* first = records + record * stored_record_bytes + leaf.offset_bytes;
    for_each_run(std::span<const Axis>(axes.data(), axes.size()), first,
                 [&](const std::byte* in, std::uint64_t stride, std::uint64_t items) {
                   for (std::uint64_t i = 0; i < items; ++i) {
                     const Wide value = load_integer(leaf, in + i * stride);
                     if (fits(value, type)) continue;
                     const bool fits_int64 = fits(value, {'i', 8});
                     raise(ErrorKind::InvalidArgument,
                           "field {}: value {}{} does not fit {} (record {} of its row); use dtype={{'{}': '{}'}}",
                           leaf.name, value.negative ? "-" : "", with_commas(value.magnitude), type.name(),
                           with_commas(record), leaf.name, fits_int64 ? "int64" : "uint64");
                   }
                   return true;
                 });
  }
  raise(ErrorKind::InvalidArgument, "field {}: a value does not fit {}", leaf.name, type.name());
}

using Words = std::uint64_t __attribute__((vector_size(16)));

Words load_words(const std::byte* from) {
  Words words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

/// Whether any of the scalars, `item_bytes` each, has its highest bit set. In four chains, so that one does not wait
/// for another's cache line.
bool any_has_sign(const std::byte* values, std::uint64_t bytes, std::uint32_t item_bytes) {
  constexpr std::uint64_t kAtOnce = 4 * sizeof(Words);
  Words a{};
  Words b{};
  Words c{};
  Words d{};
  for (; bytes >= kAtOnce; bytes -= kAtOnce, values += kAtOnce) {
    a |= load_words(values);
    b |= load_words(values + 16);
    c |= load_words(values + 32);
    d |= load_words(values + 48);
  }
  std::array<std::uint64_t, kAtOnce / 8> rest{};
  std::memcpy(rest.data(), values, bytes);
  a |= (b | c) | d;
  std::uint64_t all = a[0] | a[1];
  for (const std::uint64_t word : rest) all |= word;
  // The highest bit of each scalar in a word.
  const std::uint64_t signs = item_bytes == 1   ? 0x8080808080808080U
                              : item_bytes == 2 ? 0x8000800080008000U
                              : item_bytes == 4 ? 0x8000000080000000U
                                                : 0x8000000000000000U;
  return (all & signs) != 0;
}

}  // namespace

void check_cast(const Leaf& from, ScalarType to) {
  const ScalarType stored{from.kind, from.item_bytes};
  if (find_cast_run(stored, to) != nullptr) return;
  raise(ErrorKind::InvalidArgument, "field {}: {} cannot become {}", from.name, stored.name(), to.name());
}

bool has_same_bytes(const Leaf& from, ScalarType to) {
  if (from.item_bytes != to.bytes) return false;
  const auto is_integer = [](char kind) { return kind == 'i' || kind == 'u'; };
  return from.kind == to.kind || (is_integer(from.kind) && is_integer(to.kind));
}

void check_values(const Leaf& leaf, const std::byte* records, std::uint64_t count, ScalarType type) {
  if (leaf.kind == type.kind) return;
  if (!any_has_sign(records, count * leaf.count() * type.bytes, type.bytes)) return;
  refuse_value(leaf, records, leaf.item_bytes * leaf.count(), count, type);
}

void cast_leaf(const Leaf& leaf, const std::byte* records, std::uint64_t stored_record_bytes, std::uint64_t count,
               ScalarType type, std::byte* out) {
  if (count == 0) return;
  const CastRun run = find_cast_run({leaf.kind, leaf.item_bytes}, type);
  if (run == nullptr) check_cast(leaf, type);  // throws
  const Axes axes = axes_of(leaf, stored_record_bytes, count);
  const std::byte* first = records + leaf.offset_bytes;
  const bool fine = for_each_run(std::span<const Axis>(axes.data(), axes.size()), first,
                                 [&](const std::byte* in, std::uint64_t stride, std::uint64_t items) {
                                   const bool run_fits = run(in, stride, items, out, type.bytes);
                                   out += items * type.bytes;
                                   return run_fits;
                                 });
  if (!fine) refuse_value(leaf, records, stored_record_bytes, count, type);
}

}  // namespace penstock
