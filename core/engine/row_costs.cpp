#include "core/engine/row_costs.h"

#include "core/base/error.h"
#include "core/engine/batch_work.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace penstock {
namespace {

constexpr std::uint64_t kFewRows = 64;       // under way at once
constexpr std::size_t kRowsInMemory = 1024;  // that are in memory at once, for each thread that asks

std::uint64_t saturated(std::uint64_t a, std::uint64_t b, std::uint64_t factor) {
  __extension__ using Wide = unsigned __int128;
  const Wide cost = Wide{a} * b * factor;
  return cost > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(cost);
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? UINT64_MAX : result;
}

std::uint64_t attention(std::uint64_t length, std::uint64_t window) {
  return sum(saturated(length, length, 2), saturated(window, length, 1));
}

Parts wanted_of(const SourceInfo& info, const CostRule& rule) {
  const bool has_constant = rule.kind == CostRule::Kind::Tokens && info.packed_multiple == 0;
  return info.shape.ragged || has_constant || rule.kind == CostRule::Kind::Given ? Parts::None : Parts::Spans;
}

}  // namespace

/// One thread's at a time.
struct RowCosts::Reading {
  std::shared_ptr<Batch> batch = std::make_shared<Batch>();
  std::exception_ptr error;
  std::uint64_t error_row = UINT64_MAX;
  RowReader reader;
  ReadCounters* const counters;

  Reading(const StoreChoice& through, ReadCounters* counters_)
      : reader(
            [this](const RowReader::Ended& ended) {
              if (!ended.error || ended.row >= error_row) return;
              error_row = ended.row;
              error = ended.error;
            },
            through, ChannelMode::MayWait, counters_),
        counters(counters_) {}
};

RowCosts::RowCosts(const std::vector<std::shared_ptr<const Source>>& sources, std::vector<CostRule> rules,
                   StoreChoice through, std::uint64_t most_bytes, std::vector<ReadCounters*> counters)
    : rules_(std::move(rules)), through_(std::move(through)), most_bytes_(most_bytes), counters_(std::move(counters)) {
  if (rules_.size() != sources.size()) {
    raise(ErrorKind::InvalidArgument, "{} rules of costs for {} sources", rules_.size(), sources.size());
  }
  BatchFormats read;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const SourceInfo& info = sources[i]->info();
    if (rules_[i].kind == CostRule::Kind::Given && (!rules_[i].given || rules_[i].given->size() != info.size)) {
      raise(ErrorKind::InvalidArgument, "{} costs for {} observations of {}",
            with_commas(rules_[i].given ? rules_[i].given->size() : 0), with_commas(info.size), info.path);
    }
    read.emplace_back(sources[i], std::vector<ColumnSpec>(), wanted_of(info, rules_[i]));
  }
  formats_ = std::make_shared<const BatchFormats>(std::move(read));
}

RowCosts::~RowCosts() = default;

bool RowCosts::is_read(const Pick& pick) const {
  const BatchFormat& format = (*formats_)[pick.source];
  return rules_[pick.source].kind != CostRule::Kind::Given && (format.shape.ragged || has_spans(format.wanted));
}

std::unique_ptr<RowCosts::Reading> RowCosts::take() const {
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    std::unique_ptr<Reading> reading = std::move(idle_.back());
    idle_.pop_back();
    return reading;
  }
  ReadCounters* counters = nullptr;
  if (!counters_.empty()) {
    counters = counters_.back();
    counters_.pop_back();
  }
  return std::make_unique<Reading>(through_, counters);
}

void RowCosts::of(std::span<const Pick> picks, std::span<std::uint64_t> out, const std::atomic<bool>& cancelled) const {
  std::vector<std::vector<std::size_t>> by_source(formats_->size());
  bool reads = false;
  for (std::size_t i = 0; i < picks.size(); ++i) {
    const CostRule& rule = rules_[picks[i].source];
    if (rule.kind == CostRule::Kind::Given) {
      out[i] = (*rule.given)[picks[i].index];
    } else if (is_read(picks[i])) {
      by_source[picks[i].source].push_back(i);
      reads = true;
    } else {
      out[i] = (*formats_)[picks[i].source].shape.length - rule.shorten;
    }
  }
  if (!reads) return;
  std::unique_ptr<Reading> reading = take();
  try {
    for (const std::vector<std::size_t>& numbers : by_source) {
      for (std::span<const std::size_t> left(numbers); !left.empty();) {
        const std::span<const std::size_t> some = left.first(std::min(left.size(), kRowsInMemory));
        read(*reading, picks, some, out, cancelled);
        left = left.subspan(some.size());
      }
    }
  } catch (...) {
    ReadCounters* const counters = reading->counters;
    reading.reset();  // it may count to its end
    const std::lock_guard lock(mutex_);
    if (counters != nullptr) counters_.push_back(counters);  // there was room: it came from there
    throw;
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(reading));
}

// Rows of one source. After an error, and once it was cancelled, the Reading is not used again.
void RowCosts::read(Reading& reading, std::span<const Pick> picks, std::span<const std::size_t> numbers,
                    std::span<std::uint64_t> out, const std::atomic<bool>& cancelled) const {
  Batch& batch = *reading.batch;
  const std::uint32_t source = picks[numbers.front()].source;
  batch.budget.reset();
  batch.formats = formats_;
  batch.format = &(*formats_)[source];
  batch.most_bytes = most_bytes_;
  batch.plan.rows = batch.plan.valid = numbers.size();
  batch.picks.clear();
  for (const std::size_t number : numbers) batch.picks.push_back(picks[number]);
  BatchWork(batch).prepare_rows();
  const RowReader::Part part = batch.format->shape.ragged ? RowReader::Part::Measure : RowReader::Part::Whole;
  const auto pump = [&] {
    if (cancelled || batch.budget.failure()) batch.cancelled = true;  // what was not read yet ends unread
    reading.reader.pump(std::chrono::milliseconds(50));
  };
  for (std::uint64_t row = 0; row < numbers.size() && !reading.error && !cancelled; ++row) {
    reading.reader.start(reading.batch, row, part);
    if (row % kFewRows == kFewRows - 1) pump();
  }
  while (!reading.reader.is_idle()) pump();
  if (cancelled) throw CostsCancelled();
  if (reading.error) std::rethrow_exception(reading.error);
  for (std::size_t i = 0; i < numbers.size(); ++i) out[numbers[i]] = cost_of(batch.rows[i], source);
}

std::uint64_t RowCosts::cost_of(const Row& row, std::uint32_t source) const {
  const CostRule& rule = rules_[source];
  const bool is_attention = rule.kind == CostRule::Kind::Attention;
  if ((*formats_)[source].shape.ragged) return is_attention ? attention(row.length, kDocumentsWindow) : row.length;
  const std::uint64_t window = row.length - rule.shorten;
  std::uint64_t cost = 0;
  for (const Span& span : row.spans) {
    const std::uint64_t length = std::min(span.stop, window) - std::min(span.start, window);
    cost = sum(cost, is_attention ? attention(length, window) : length);
  }
  return cost;
}

}  // namespace penstock
