// Order: the seam between positions and observations.
//
// A position is how many observations the whole job has consumed; the order says which observation stands there. It is
// a pure function of its constructor's arguments and the position: no state, no files, no threads. Any thread.
#pragma once

#include "core/job/epochs.h"
#include "core/job/order_difference.h"
#include "core/job/position.h"
#include "core/job/steering.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace penstock {

/// What stands at one position: observation `index` of source number `source`, met for the (`epoch` + 1)-th time. Rows
/// with equal (source, fetch) are read together.
struct Pick {
  std::uint64_t index = 0;
  std::uint64_t fetch = 0;
  std::uint32_t source = 0;
  std::uint32_t epoch = 0;

  bool operator==(const Pick&) const = default;
};

class Order {
 public:
  /// `end()` of an order without stages.
  static constexpr std::uint64_t kNever = kNoPosition;

  virtual ~Order() = default;

  /// out[i] = what stands at position first + i * stride.
  virtual void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const = 0;

  /// out[i] = what stands at position positions[i]; positions rise. One by one unless an order knows better.
  virtual void pick_at(std::span<const std::uint64_t> positions, std::span<Pick> out) const;

  /// Observations in one epoch (N); never 0. Of an order without epochs, its length, at most 2^63.
  [[nodiscard]] virtual std::uint64_t epoch_size() const = 0;

  /// Where epochs change their size. One size unless an order says otherwise, whose last one is epoch_size() then.
  [[nodiscard]] virtual EpochSizes epoch_sizes() const;

  /// First position after `position` that no batch may cross: the end of its stage (where a window or a mixture may
  /// change); kNever where there are no stages. Epoch ends are the cursor's business, since they may be crossed.
  [[nodiscard]] virtual std::uint64_t end(std::uint64_t position) const = 0;

  /// How far to plan ahead: the first position after `position` where no fetch that was met at or before `position`
  /// goes on, or an earlier one, where fetches end so far apart that some are better read in parts. position + 1 where
  /// each fetch is one row.
  [[nodiscard]] virtual std::uint64_t fetch_end(std::uint64_t position) const = 0;

  /// Canonical JSON of all that decides the positions before `position`, seed and algorithm included. Two orders with
  /// the same identity(p) agree on every position below p. (Stages that begin at or after `position` are not in it.)
  [[nodiscard]] virtual std::string identity(std::uint64_t position) const = 0;

  /// How this order differs before `position` from one that a state was saved with, whose identity(kNever) is `saved`:
  /// an object, but else untrusted. Member by member unless an order knows better. Throws StateMismatch for what no
  /// order of this version has.
  [[nodiscard]] virtual OrderDifference difference_to(std::string_view saved, std::uint64_t position) const;

  /// The source of the pick at `position`. A mixture knows it without its sources' orders, which may wait.
  [[nodiscard]] virtual std::uint32_t source_at(std::uint64_t position) const;

  /// A hint: a job's positions end at `position`, so nothing is made ready for those from there on. Of several jobs the
  /// last end counts.
  virtual void note_end(std::uint64_t /*position*/) const {}

  /// True: pick() may wait for answers from elsewhere (core/job/pick_wait.h), so the consumer leaves it to threads.
  [[nodiscard]] virtual bool may_wait() const { return false; }

  /// For messages, where `position` is: "epoch 3".
  [[nodiscard]] virtual std::string place(std::uint64_t position) const;

  /// Weights that were set while the job ran; null where none can be. identity() ends with them:
  /// "steered":{"names":[…],"stages":[…]}}.
  [[nodiscard]] virtual std::shared_ptr<const Steering> steering() const { return nullptr; }
  /// The same order with these, which begin where change_begin() says. Throws InvalidArgument where none can be set,
  /// or these cannot.
  [[nodiscard]] virtual std::shared_ptr<const Order> steered(const std::shared_ptr<const Steering>& steering) const;
  /// The first position at or after `position` where weights may begin.
  [[nodiscard]] virtual std::uint64_t change_begin(std::uint64_t position) const { return position; }
};

}  // namespace penstock
