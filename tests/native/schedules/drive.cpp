// The consumer of a schedule: what it asks of the loader, and what must be true of that.
#include "core/base/error.h"
#include "core/base/sync.h"
#include "core/job/balance.h"
#include "tests/native/schedules/engine_state.h"
#include "tests/native/schedules/scenario.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace penstock::schedules {
namespace {

// Sources are immutable, and costly to make.
const BatchFormat& shared_format(const testing::Case& setup, std::uint32_t first) {
  static std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>, BatchFormat> made;
  const auto key = std::make_tuple(setup.count, setup.window, first);
  const auto at = made.find(key);
  return at != made.end() ? at->second
                          : made.emplace(key, testing::format_of(setup, setup.window, first)).first->second;
}

class Drive {
 public:
  Drive(const Scenario& scenario, Scheduler& scheduler) : scenario_(scenario), scheduler_(scheduler) {}

  void run() {
    const LoaderOptions options = make_options();
    start_takers();
    auto loader = std::make_unique<Loader>(options);
    EngineState state(*loader);
    scheduler_.at_rest = [&] { expect_none(state.wrong_at_rest(scheduler_)); };
    scheduler_.at_read = [&] { expect_none(state.wrong_memory(held_.size())); };
    loader_ = loader.get();
    state_ = &state;
    consume();
    scheduler_.note("the loader is dropped");
    scheduler_.at_read = nullptr;
    scheduler_.at_rest = nullptr;
    state.forget();
    if (happens(2)) let_go(0);
    loader.reset();
    let_go(0);
    end_takers();
    expect_none(state.left_over());
  }

 private:
  bool happens(unsigned once_in) { return scheduler_.choices().happens(once_in); }
  std::uint64_t below(std::uint64_t count) { return scheduler_.choices().pick(count); }
  void expect_none(const std::string& wrong) {
    if (!wrong.empty()) scheduler_.fail(wrong);
  }
  void expect(bool is_right, const std::string& wrong) {
    if (!is_right) scheduler_.fail(wrong);
  }

  // --- options

  LoaderOptions make_options() {
    const testing::Case& setup = scenario_.setup;
    BatchFormats formats{shared_format(setup, 0)};
    std::shared_ptr<const Order> order = std::make_shared<testing::IdentityOrder>(setup.count, setup.fetch);
    if (scenario_.has_two_sources) {
      formats.push_back(shared_format(setup, 1'000));
      order = std::make_shared<testing::StagedOrder>(
          setup.count, std::vector<testing::Stage>{{0, 0}, {(setup.count + 1) / 2, 1}, {setup.count, 0}},
          setup.count % 2 == 0, setup.fetch);
    }
    for (const BatchFormat& format : formats) {
      auto& files = static_cast<const testing::MemorySource&>(*format.source).store();
      stores_.push_back(std::make_unique<VirtualStore>(scenario_.store, files));
    }
    LoaderOptions options = testing::options_of(setup, std::move(order), std::move(formats));
    options.cores = scenario_.cores;
    options.through = [this](ByteStore& files) -> ByteStore& {
      return **std::find_if(stores_.begin(), stores_.end(), [&](const auto& each) { return &each->files() == &files; });
    };
    if (scenario_.balances) {
      CostRule tokens;
      tokens.kind = CostRule::Kind::Tokens;
      options.balance = BalanceOptions{std::vector<CostRule>(options.formats->size(), tokens)};
    }
    if (scenario_.takers > 0) options.hand_over = hand_over_ = std::make_shared<HandOver>(scenario_.takers);
    if (scenario_.setup.lends) {
      options.lend = [this](Slab& slab, std::uint64_t bytes) {
        if (other_faults_ < 5 && happens(scenario_.lend_fails)) {
          ++other_faults_;
          scheduler_.note("no memory is lent");
          throw std::bad_alloc();
        }
        testing::lend_memory(slab, bytes);
      };
    }
    sync::Thread::refused = 0;
    sync::Thread::refused_once_in = scenario_.threads_refused;
    return options;
  }

  [[nodiscard]] unsigned faults() const {
    unsigned faults = other_faults_ + sync::Thread::refused;
    for (const auto& store : stores_) faults += store->faults();
    return faults;
  }

  // --- takers

  void start_takers() {
    for (unsigned i = 0; i < scenario_.takers; ++i) {
      takers_.push_back(&scheduler_.spawn("taker " + std::to_string(i), [this] { take(); }));
    }
  }

  void take() {
    while (!hand_over_->closed()) {
      HandOver::Rows rows = hand_over_->take(std::chrono::milliseconds(50));
      if (!rows.batch) continue;
      std::vector<unsigned>& marks = marks_[rows.batch.get()];
      if (rows.first == 0) marks.assign(rows.batch->plan.valid, 0);
      for (std::uint64_t row = rows.first; row < rows.last; ++row) ++marks[row];
      std::exception_ptr error;
      if (other_faults_ < 5 && happens(scenario_.takers_fail)) {
        ++other_faults_;
        error = std::make_exception_ptr(Error(ErrorKind::InvalidArgument, "a taker fails"));
      }
      hand_over_->give_back(std::move(rows), error);
    }
  }

  void end_takers() {
    if (hand_over_) hand_over_->close();
    for (const Thread* taker : takers_) scheduler_.join(*taker);
  }

  // --- the consumer

  void consume() {
    for (unsigned polls = 1;; ++polls) {
      expect_none(state_->wrong_memory(held_.size()));
      const std::uint64_t before = loader_->position();
      std::shared_ptr<Batch> batch;
      if (poll(batch)) {
        if (batch) {
          deliver(std::move(batch), before);
        } else if (!loader_->ended()) {
          scheduler_.note("waits");
          loader_->wait(std::chrono::nanoseconds(scenario_.patience));
        } else if (is_over(before)) {
          return;
        }
      }
      if (scenario_.leaves_after ? polls >= *scenario_.leaves_after : happens(scenario_.leaves)) return leave();
      if (moves_ < scenario_.most_moves && happens(scenario_.moves)) move();
    }
  }

  // False after an error; the loader is asked again.
  bool poll(std::shared_ptr<Batch>& batch) {
    try {
      batch = loader_->poll();
      return true;
    } catch (const std::exception& error) {
      scheduler_.note(std::string("error: ") + error.what());
      if (std::string(error.what()).starts_with("no memory for the next batch")) {
        expect(!held_.empty(), std::string("although nothing is held: ") + error.what());
        let_go(0);
      } else {
        expect(++errors_ <= faults(), std::string("an error without a fault: ") + error.what());
      }
      return false;
    }
  }

  // The `for` is over: it may have been its epoch's.
  bool is_over(std::uint64_t before) {
    const std::optional<BatchPlan> plan = loader_->job().plan(before, share());
    const std::uint64_t end = loader_->job().cursor().run_end();
    expect(!plan || loader_->position() < end, "a batch is lost at the end");
    loader_->begin();
    return !plan;
  }

  [[nodiscard]] Share share() const { return {scenario_.setup.rank, scenario_.setup.world_size}; }

  void deliver(std::shared_ptr<Batch> batch, std::uint64_t before) {
    scheduler_.note("gets the batch at " + std::to_string(batch->plan.position));
    const std::optional<BatchPlan> plan = loader_->job().plan(before, share());
    expect(plan && plan->position == batch->plan.position && plan->end == batch->plan.end &&
               loader_->position() == plan->end && plan->rows == batch->plan.rows && plan->valid == batch->plan.valid,
           "another batch than the next");
    expect(batch->picks == picks_of(*plan), "a batch of other observations");
    expect_whole(*batch);
    if (hand_over_ && plan->valid > 0) {
      expect(marks_[batch.get()] == std::vector<unsigned>(plan->valid, 1), "rows that takers did not finish once each");
    }
    held_.push_back(std::move(batch));
    let_go(scenario_.holds);
    if (scenario_.pause > 0 && happens(scenario_.pauses)) {
      sync::sleep_for(std::chrono::nanoseconds(below(static_cast<std::uint64_t>(scenario_.pause))));
    }
  }

  void expect_whole(Batch& batch) {
    const Looking looking;
    if (testing::look(batch) != testing::whole_of(batch)) {
      scheduler_.fail("a batch with other bytes than its observations'");
    }
  }

  [[nodiscard]] std::vector<Pick> picks_of(const BatchPlan& plan) const {
    std::vector<Pick> picks(plan.valid);
    loader_->job().pick(plan, picks);
    if (!scenario_.balances || plan.valid == 0) return picks;
    const BatchPlan whole = loader_->job().cursor().whole(plan);
    std::vector<Pick> all(whole.valid);
    loader_->job().pick(whole, all);
    std::vector<std::uint64_t> costs;
    for (const Pick& pick : all) costs.push_back(testing::MemorySource::document_length(pick.index));
    std::vector<std::uint64_t> numbers;
    balance_rows(costs, share(), plan.rows, numbers);
    picks.clear();
    for (const std::uint64_t number : numbers) picks.push_back(all[number]);
    return picks;
  }

  // Batches that are held must not have changed.
  void let_go(std::size_t most) {
    while (held_.size() > most) {
      expect_whole(*held_.front());
      held_.pop_front();
    }
  }

  void move() {
    ++moves_;
    const std::uint64_t end = loader_->job().cursor().run_end();
    switch (below(4)) {
      case 0: scheduler_.note("seeks"); return loader_->seek(below(end + 1));
      case 1:
        scheduler_.note("goes on from its state");
        static_cast<void>(loader_->load(loader_->state(), OnMismatch::Refuse));
        return;
      case 2:
        scheduler_.note("changes the batch size");
        return loader_->set_global_batch_size(scenario_.setup.world_size * (1 + below(4)));
      default:
        if (!loader_->ended() && loader_->metrics().batches > 0) {
          scheduler_.note("changes what follows");
          state_->change(loader_->position() + below(end + 1 - std::min(end, loader_->position())));
        }
    }
  }

  void leave() {
    if (!scenario_.closes) return;
    scheduler_.note("closes");
    loader_->close();
    try {
      static_cast<void>(loader_->poll());
    } catch (const Error&) {
      return;
    }
    scheduler_.fail("a closed loader does not refuse");
  }

  const Scenario& scenario_;
  Scheduler& scheduler_;
  std::vector<std::unique_ptr<VirtualStore>> stores_;
  std::shared_ptr<HandOver> hand_over_;
  std::vector<Thread*> takers_;
  std::map<const Batch*, std::vector<unsigned>> marks_;  // how often each row was taken
  Loader* loader_ = nullptr;
  EngineState* state_ = nullptr;
  std::deque<std::shared_ptr<Batch>> held_;
  unsigned errors_ = 0;
  unsigned other_faults_ = 0;
  unsigned moves_ = 0;
};

}  // namespace

void run(const Scenario& scenario, Scheduler& scheduler) {
  scheduler.run([&] {
    Drive drive(scenario, scheduler);
    drive.run();
  });
}

}  // namespace penstock::schedules
