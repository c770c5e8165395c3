#include "tests/native/schedules/virtual_store.h"

#include "core/base/error.h"
#include "core/io/changed_file.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>
#include <utility>

namespace penstock::schedules {
namespace {

// Reads end at once or are not at hand.
class HandChannel : public Channel {
 public:
  explicit HandChannel(VirtualStore& store) : store_(store) {}

  void submit(std::span<Read* const> reads) override {
    Scheduler::present()->step(Step::Kind::Submit, this);
    for (Read* read : reads) queue_.push_back(read);
  }
  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds /*timeout*/) override {
    Scheduler::present()->step(Step::Kind::Submit, this);
    std::size_t count = 0;
    for (; count < done.size() && !queue_.empty(); ++count) {
      done[count] = queue_.front();
      queue_.pop_front();
      if (Scheduler::present()->choices().happens(store_.options().misses)) {
        done[count]->outcome = Outcome::NotAtHand;
      } else {
        store_.read(*done[count]);
      }
    }
    return count;
  }
  void wake() override {}

 private:
  VirtualStore& store_;
  std::deque<Read*> queue_;
};

class VirtualChannel : public Channel {
 public:
  explicit VirtualChannel(VirtualStore& store) : store_(store) {}
  ~VirtualChannel() override {
    if (!under_way_.empty()) Scheduler::present()->fail("a channel with reads under way is destroyed");
  }
  VirtualChannel(const VirtualChannel&) = delete;
  VirtualChannel& operator=(const VirtualChannel&) = delete;

  void submit(std::span<Read* const> reads) override {
    Scheduler::present()->step(Step::Kind::Submit, this);
    if (store_.faults_now(store_.options().refuses)) throw std::bad_alloc();
    for (Read* read : reads) queue_.push_back(read);
  }

  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override {
    Scheduler::present()->step(Step::Kind::Submit, this);
    const bool one_by_one = store_.options().depth <= 1;
    do {
      begin_reads();
      if (!one_by_one) break;
      while (!under_way_.empty()) rest(kForever);
    } while (!queue_.empty() && ended_.size() < done.size() && queue_.front()->owner == ended_.back()->owner);
    if (ended_.empty() && !under_way_.empty() && timeout.count() > 0 && !was_woken_) {
      rest(Scheduler::present()->now() + timeout.count());
    }
    if (ended_.empty() && timeout.count() > 0) was_woken_ = false;
    const std::size_t count = std::min(done.size(), ended_.size());
    std::copy_n(ended_.begin(), count, done.begin());
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

  // Ends this wait, or the next one: as an eventfd does.
  void wake() override {
    Scheduler::present()->step(Step::Kind::Wake, this);
    if (store_.options().depth <= 1) return;
    was_woken_ = true;
    if (resting_ != nullptr) resting_->is_ready = true;
  }

 private:
  struct UnderWay : Pending {
    UnderWay(VirtualChannel& channel_, Read& read_) : channel(channel_), read(read_) {}
    void end() override { channel.end(*this); }
    [[nodiscard]] const void* object() const override { return &channel; }
    VirtualChannel& channel;
    Read& read;
  };

  void begin_reads() {
    Scheduler& scheduler = *Scheduler::present();
    while (!queue_.empty() && under_way_.size() < store_.options().depth) {
      Read& read = *queue_.front();
      queue_.pop_front();
      if (read.size > 0) std::memset(read.destination, 0xee, read.size);
      if (scheduler.choices().happens(store_.options().cached)) {
        store_.read(read);
        ended_.push_back(&read);
      } else {
        scheduler.add(*under_way_.emplace_back(std::make_unique<UnderWay>(*this, read)));
      }
    }
  }

  void rest(Nanoseconds until) {
    Scheduler& scheduler = *Scheduler::present();
    resting_ = &scheduler.self();
    resting_->is_ready = false;
    scheduler.wait(Step::Kind::Collect, this, until);
    resting_ = nullptr;
  }

  void end(const UnderWay& pending) {
    Scheduler& scheduler = *Scheduler::present();
    if (!scheduler.is_timeless() && store_.options().read_time > 0) {
      scheduler.pass(
          static_cast<Nanoseconds>(scheduler.choices().pick(static_cast<std::size_t>(store_.options().read_time))));
    }
    store_.read(pending.read);
    ended_.push_back(&pending.read);
    std::erase_if(under_way_, [&](const auto& each) { return each.get() == &pending; });
    if (resting_ != nullptr) resting_->is_ready = true;
  }

  VirtualStore& store_;
  std::deque<Read*> queue_;
  std::vector<std::unique_ptr<UnderWay>> under_way_;
  std::vector<Read*> ended_;
  Thread* resting_ = nullptr;  // the owner, in wait()
  bool was_woken_ = false;
};

}  // namespace

std::unique_ptr<Channel> VirtualStore::open_channel(ChannelMode mode) {
  if (mode == ChannelMode::NonBlocking) {
    return options_.nothing_at_hand ? nullptr : std::make_unique<HandChannel>(*this);
  }
  if (faults_now(options_.unopened)) raise(ErrorKind::IoError, "virtual: no channel");
  return std::make_unique<VirtualChannel>(*this);
}

bool VirtualStore::faults_now(unsigned once_in) {
  if (faults_ >= options_.most_faults || !Scheduler::present()->choices().happens(once_in)) return false;
  ++faults_;
  Scheduler::present()->note("a fault is injected");
  return true;
}

void VirtualStore::read(Read& read) {
  if (read.cancelled != nullptr && *read.cancelled) return;
  if (faults_now(options_.fails)) {
    const bool changed = Scheduler::present()->choices().happens(options_.changes);
    read.fail(changed ? std::make_exception_ptr(ChangedFile(read.file->path()))
                      : std::make_exception_ptr(Error(ErrorKind::IoError, "virtual: a read fails")));
    return;
  }
  files_.read_small(read.file->path(), read.offset, std::span(read.destination, read.size));
}

}  // namespace penstock::schedules
