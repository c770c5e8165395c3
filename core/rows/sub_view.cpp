#include "core/rows/sub_view.h"

#include "core/base/digest.h"
#include "core/base/error.h"

#include <span>
#include <string_view>
#include <utility>

namespace penstock {
namespace {

void check_range(const SliceRange& range, std::uint64_t size) {
  if (range.step == 0) raise(ErrorKind::InvalidArgument, "a slice with a step of 0");
  if (range.count == 0) return;
  __extension__ using i128 = __int128;
  const i128 last = i128{range.first} + i128{range.step} * (range.count - 1);
  if (range.first < size && last >= 0 && last < i128{size}) return;
  raise(ErrorKind::InvalidArgument, "a slice of {} observations from {} on by {}, the source has {}",
        with_commas(range.count), with_commas(range.first), range.step, with_commas(size));
}

void check_selected(const std::vector<std::uint64_t>& selected, std::uint64_t size) {
  std::vector<bool> seen(size);
  for (std::size_t i = 0; i < selected.size(); ++i) {
    const std::uint64_t index = selected[i];
    if (index >= size) {
      raise(ErrorKind::InvalidArgument, "number {} of the selection is observation {}, the view has {}", with_commas(i),
            with_commas(index), with_commas(size));
    }
    if (seen[index]) {
      raise(ErrorKind::InvalidArgument,
            "number {} of the selection is observation {} again: each may be selected once; orders.Weighted gives some "
            "more often",
            with_commas(i), with_commas(index));
    }
    seen[index] = true;
  }
}

// The observation's number in the base, for as long as the base is asked.
class Renumbered {
 public:
  Renumbered(Row& row, std::uint64_t index) noexcept : row_(row), index_(std::exchange(row.index, index)) {}
  ~Renumbered() { row_.index = index_; }
  Renumbered(const Renumbered&) = delete;
  Renumbered& operator=(const Renumbered&) = delete;

 private:
  Row& row_;
  const std::uint64_t index_;
};

}  // namespace

SubView::SubView(std::shared_ptr<const Source> base, const SliceRange& range)
    : SubView(std::move(base), Numbers(range)) {
  check_range(range, info_.size);
  say(range.count, "slice",
      fmt::format(R"({{"count":{},"first":{},"step":{}}})", range.count, range.first, range.step));
}

SubView::SubView(std::shared_ptr<const Source> base, std::vector<std::uint64_t> selected)
    : SubView(std::move(base), Numbers(Selected{std::move(selected)})) {
  const std::vector<std::uint64_t>& numbers = std::get<Selected>(numbers_).numbers;
  check_selected(numbers, info_.size);
  const DigestBytes digest = digest_of(std::as_bytes(std::span(numbers)));
  say(numbers.size(), "selection", fmt::format(R"({{"count":{},"digest":"{}"}})", numbers.size(), hex_of(digest)));
}

SubView::SubView(std::shared_ptr<const Source> base, std::shared_ptr<const Chosen> chosen, std::string_view said)
    : SubView(std::move(base), Numbers(Where{std::move(chosen)})) {
  const Chosen& known = *std::get<Where>(numbers_).chosen;
  if (known.size() != info_.size) {
    raise(ErrorKind::InvalidArgument, "a choice among {} observations, the view has {}", with_commas(known.size()),
          with_commas(info_.size));
  }
  say(known.count(), "where", said);
}

SubView::SubView(std::shared_ptr<const Source> base, const Split& split) : SubView(std::move(base), Numbers(split)) {
  if (split.one_in < 2) {
    raise(ErrorKind::InvalidArgument, "one_in={}: one of at least 2 observations is held out", split.one_in);
  }
  say(split.count(info_.size), "split",
      fmt::format(R"({{"held_out":{},"one_in":{},"seed":{}}})", split.held_out, split.one_in, split.seed));
}

SubView::SubView(std::shared_ptr<const Source> base, UnitParts cut)
    : SubView(std::move(base), Numbers(std::move(cut))) {
  const auto& [units, parts] = std::get<UnitParts>(numbers_);
  std::uint64_t count = 0;
  if (parts == 0 || __builtin_mul_overflow(units->info().size, parts, &count) || count > info_.size) {
    raise(ErrorKind::InvalidArgument, "{} parts of each of {} observations, the source has {}", with_commas(parts),
          with_commas(units->info().size), with_commas(info_.size));
  }
  say(count, "cut", fmt::format(R"({{"parts":{},"units":{}}})", parts, units->info().identity.view));
}

SubView::SubView(std::shared_ptr<const Source> base, Numbers numbers)
    : base_(std::move(base)), numbers_(std::move(numbers)), depth_(depth_of(*base_)), info_(base_->info()) {}

// A member for the view's identity, which is an object with members. A sub-view of sub-views names them in their order:
// "slice", "split2", "slice3".
void SubView::say(std::uint64_t size, std::string_view name, std::string_view what) {
  info_.size = size;
  const std::string number = depth_ == 0 ? "" : std::to_string(depth_ + 1);
  std::string& view = info_.identity.view;
  view.pop_back();
  view += fmt::format(R"(,"{}{}":{}}})", name, number, what);
}

unsigned SubView::depth_of(const Source& base) noexcept {
  const auto* const other = dynamic_cast<const SubView*>(&base);
  return other == nullptr ? 0 : other->depth_ + 1;
}

bool SubView::plan(Row& row, unsigned round, Parts wanted, Reads& out) const {
  const Renumbered renumbered(row, number_in_base(row.index));
  return base_->plan(row, round, wanted, out);
}

}  // namespace penstock
