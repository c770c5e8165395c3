#include "layout/where/choosing_windows.h"

#include "core/base/error.h"
#include "layout/documents/document_lengths.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kDocumentsAtOnce = 1U << 14;  // whose starts are read at once; a multiple of 64

// The next place from `from` on, below `stop`, whose bit is `wanted`; `stop` if there is none.
std::uint64_t next_bit(const std::vector<std::uint64_t>& words, std::uint64_t from, std::uint64_t stop, bool wanted) {
  while (from < stop) {
    const std::uint64_t word = (wanted ? words[from / 64] : ~words[from / 64]) >> (from % 64);
    if (word != 0) return std::min(stop, from + static_cast<std::uint64_t>(std::countr_zero(word)));
    from = (from / 64 + 1) * 64;
  }
  return stop;
}

}  // namespace

ChoosingWindows::ChoosingWindows(DatasetPtr dataset, std::shared_ptr<const Chosen> documents, std::uint64_t window,
                                 std::uint64_t lookahead, StoreChoice through)
    : dataset_(std::move(dataset)),
      documents_(std::move(documents)),
      window_(window),
      lookahead_(lookahead),
      through_(std::move(through)) {
  check_has_lengths(*dataset_);
  if (documents_->size() != dataset_->span_count()) {
    raise(ErrorKind::InvalidArgument, "{}: a choice among {} documents, it has {}", dataset_->path,
          with_commas(documents_->size()), with_commas(dataset_->span_count()));
  }
  const std::uint64_t records = dataset_->record_count();
  windows_ = window == 0 || records < lookahead ? 0 : (records - lookahead) / window;
  words_.resize(words_for(windows_));
}

bool ChoosingWindows::step(std::uint64_t documents) {
  const std::vector<std::uint64_t>& starts = dataset_->span_starts;
  const std::uint64_t stop = documents > starts.back() - next_ ? starts.back() : next_ + documents;
  while (next_ < stop) {
    const std::uint64_t shard = Dataset::shard_of(starts, next_);
    const std::uint64_t last = std::min(stop, starts[shard + 1]);
    look(shard, next_, last);
    next_ = last;
  }
  if (next_ < starts.back()) return true;
  finish_run();
  return false;
}

// Documents [first, stop) of the dataset, all of one shard.
void ChoosingWindows::look(std::uint64_t shard, std::uint64_t first, std::uint64_t stop) {
  const std::vector<std::uint64_t>& words = documents_->words();
  const std::uint64_t before = dataset_->span_starts[shard];
  const std::uint64_t records = dataset_->record_starts[shard];
  DocumentStarts reader(*dataset_, dataset_->shards[shard], through_);
  for (first = next_bit(words, first, stop, true); first < stop; first = next_bit(words, first, stop, true)) {
    const std::uint64_t end = std::min(stop, first + kDocumentsAtOnce);
    starts_.resize(end - first + 1);
    reader.read(first - before, starts_);
    for (std::uint64_t at = first; at < end; at = next_bit(words, at, end, true)) {
      const std::uint64_t run_end = next_bit(words, at, end, false);
      add(records + starts_[at - first], records + starts_[run_end - first]);
      at = run_end;
    }
    first = end;
  }
}

// Records [begin, end) of the stream are of chosen documents, and none before `begin` that was not added.
void ChoosingWindows::add(std::uint64_t begin, std::uint64_t end) {
  if (begin == end) return;
  if (begin != end_) {
    finish_run();
    begin_ = begin;
  }
  end_ = end;
}

void ChoosingWindows::finish_run() {
  if (end_ - begin_ < window_ + lookahead_ || windows_ == 0) return;
  std::uint64_t first = begin_ / window_ + (begin_ % window_ == 0 ? 0 : 1);
  const std::uint64_t stop = std::min(windows_, (end_ - lookahead_) / window_);
  while (first < stop) {
    const std::uint64_t bits = std::min(64 - first % 64, stop - first);
    words_[first / 64] |= (bits == 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1) << first % 64;
    first += bits;
  }
}

Chosen ChoosingWindows::chosen() {
  return {std::move(words_), windows_};
}

}  // namespace penstock::layout
