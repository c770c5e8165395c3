#include "core/batch/slice.h"

#include "core/base/error.h"

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

Slice::Slice(std::shared_ptr<const Source> base, const SliceRange& range)
    : base_(std::move(base)), range_(range), info_(base_->info()) {
  check_range(range_, info_.size);
  info_.size = range_.count;
  std::string_view view = info_.identity.view;  // an object with members
  view.remove_suffix(1);
  info_.identity.view =
      fmt::format(R"({},"slice":{{"count":{},"first":{},"step":{}}}}})", view, range_.count, range_.first, range_.step);
}

bool Slice::plan(Row& row, unsigned round, Parts wanted, Reads& out) const {
  const Renumbered renumbered(row, base_index(row.index));
  return base_->plan(row, round, wanted, out);
}

}  // namespace penstock
