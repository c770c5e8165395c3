#include "core/batch/sub_view.h"

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
    : SubView(std::move(base), range, std::vector<std::uint64_t>()) {
  check_range(range_, info_.size);
  say(range_.count,
      fmt::format(R"("slice":{{"count":{},"first":{},"step":{}}})", range_.count, range_.first, range_.step));
}

SubView::SubView(std::shared_ptr<const Source> base, std::vector<std::uint64_t> selected)
    : SubView(std::move(base), SliceRange(), std::move(selected)) {
  check_selected(selected_, info_.size);
  const DigestBytes digest = digest_of(std::as_bytes(std::span(selected_)));
  say(selected_.size(), fmt::format(R"("selection":{{"count":{},"digest":"{}"}})", selected_.size(), hex_of(digest)));
}

SubView::SubView(std::shared_ptr<const Source> base, const SliceRange& range, std::vector<std::uint64_t> selected)
    : base_(std::move(base)), range_(range), selected_(std::move(selected)), info_(base_->info()) {}

// `what`: a member for the view's identity, which is an object with members.
void SubView::say(std::uint64_t size, std::string_view what) {
  info_.size = size;
  std::string& view = info_.identity.view;
  view.pop_back();
  view.append(",").append(what).append("}");
}

bool SubView::plan(Row& row, unsigned round, Parts wanted, Reads& out) const {
  const Renumbered renumbered(row, number_in_base(row.index));
  return base_->plan(row, round, wanted, out);
}

}  // namespace penstock
