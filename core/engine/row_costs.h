// RowCosts: what rows cost, by the lengths of their documents, for those who share out rows by it (core/job/balance.h).
//
// Lengths come from what tells where documents lie (an index, a pack table), never from records, so every rank can look
// at the rows of all ranks. Costs are integers, alike on every machine. Any thread; it waits for reads.
#pragma once

#include "core/base/sync.h"
#include "core/batch/batch.h"
#include "core/engine/metrics.h"
#include "core/engine/row_reader.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

/// The cost of a row of one source.
struct CostRule {
  enum class Kind {
    Attention,  // 2 len^2 + W len, summed over the row's documents: 2 W times len^2 / W + len / 2
    Tokens,     // its records that are no padding
    Given,      // as `given` says
  };
  Kind kind = Kind::Attention;
  std::uint64_t shorten = 0;                                // records at the end of each row that do not count
  std::shared_ptr<const std::vector<std::uint64_t>> given;  // of each observation
};

/// W of documents, which have no window.
inline constexpr std::uint64_t kDocumentsWindow = 32'768;

/// The batch whose costs were asked for was cancelled.
struct CostsCancelled : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "the costs of rows are no longer wanted"; }
};

class RowCosts {
 public:
  /// `rules` by the numbers of `sources`; `counters` for reads, one a thread that asks, may be fewer. Throws
  /// InvalidArgument: another number of rules, or of given costs.
  RowCosts(const std::vector<std::shared_ptr<const Source>>& sources, std::vector<CostRule> rules, StoreChoice through,
           std::uint64_t most_bytes, std::vector<ReadCounters*> counters = {});
  ~RowCosts();
  RowCosts(const RowCosts&) = delete;
  RowCosts& operator=(const RowCosts&) = delete;

  /// out[i] = the cost of the observation that picks[i] names. Throws what reading throws; CostsCancelled soon after
  /// `cancelled` is set, once the reads under way have ended.
  void of(std::span<const Pick> picks, std::span<std::uint64_t> out, const std::atomic<bool>& cancelled) const;

 private:
  struct Reading;
  [[nodiscard]] bool is_read(const Pick& pick) const;
  [[nodiscard]] std::uint64_t cost_of(const Row& row, std::uint32_t source) const;
  std::unique_ptr<Reading> take() const;
  void read(Reading& reading, std::span<const Pick> picks, std::span<const std::size_t> numbers,
            std::span<std::uint64_t> out, const std::atomic<bool>& cancelled) const;

  std::vector<CostRule> rules_;
  std::shared_ptr<const BatchFormats> formats_;  // rows of which only lengths and spans are read
  const StoreChoice through_;
  const std::uint64_t most_bytes_;
  mutable sync::Mutex mutex_;
  mutable std::vector<std::unique_ptr<Reading>> idle_;
  mutable std::vector<ReadCounters*> counters_;  // that no Reading has
};

}  // namespace penstock
