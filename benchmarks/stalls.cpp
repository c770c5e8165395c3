// How often a consumer waits for its batch where reads are slow and their times vary: penstock's loader, or a plain
// pool of threads, which stalls.py runs side by side.
//   penstock_stalls loader|pool SECTIONS STEPS SEED
// A batch is 8 rows, a row one read. A read sleeps: 2 ms at the median, log-normal with sigma 1, a function of the seed
// and the row alone, so both contenders meet the same delays. The consumer sleeps for a step of 12 ms between two
// batches. SECTIONS consumers, each with a loader or a pool of its own and other delays, walk STEPS steps each at the
// same time: all of them only sleep. Prints one line of JSON.
#include "core/engine/loader.h"
#include "core/io/byte_store.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace penstock;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr unsigned kThreads = 8;
constexpr unsigned kPrefetch = 4;
constexpr std::uint64_t kRows = 8;          // of a batch
constexpr std::uint64_t kRowRecords = 256;  // u32
constexpr std::uint64_t kRowBytes = 4 * kRowRecords;
constexpr std::uint64_t kWarmUp = 20;  // steps that are not counted
constexpr double kMedianMs = 2;
constexpr double kSigma = 1;
constexpr double kStepMs = 12;
constexpr double kStallMs = 0.5;  // of a batch that was not ready; a shorter wait is no stall

// --- delays

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

double uniform(std::uint64_t bits) {  // in (0, 1]
  return static_cast<double>((bits >> 11) + 1) * 0x1p-53;
}

class Delays {
 public:
  explicit Delays(std::uint64_t seed) : key_(mixed(seed)) {}

  [[nodiscard]] std::chrono::nanoseconds of(std::uint64_t row) const {
    const std::uint64_t bits = mixed(key_ ^ row);
    const double radius = std::sqrt(-2 * std::log(uniform(bits)));  // Box and Muller
    const double normal = radius * std::cos(2 * 3.14159265358979323846 * uniform(mixed(bits)));
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Milliseconds(kMedianMs * std::exp(kSigma * normal)));
  }

 private:
  const std::uint64_t key_;
};

// --- the loader's seams: a store whose blocking channels sleep, a source of rows of one read, an order that walks them

class SleepyStore final : public ByteStore {
 public:
  explicit SleepyStore(Delays delays) : delays_(delays) {}

  std::unique_ptr<Channel> open_channel(ChannelMode mode) override {
    return mode == ChannelMode::NonBlocking ? nullptr : std::make_unique<SleepyChannel>(delays_);
  }
  std::uint64_t size(const std::string&, Links) override { return 0; }
  void read_small(const std::string&, std::uint64_t, std::span<std::byte>) override {}
  std::vector<std::string> list(const std::string&) override { return {}; }
  [[nodiscard]] std::size_t reads_in_flight() override { return 1; }
  [[nodiscard]] std::uint64_t near_bytes() const override { return 0; }
  [[nodiscard]] std::string name() override { return "sleepy"; }

 private:
  class SleepyChannel final : public Channel {
   public:
    explicit SleepyChannel(Delays delays) : delays_(delays) {}
    void submit(std::span<Read* const> reads) override { reads_.insert(reads_.end(), reads.begin(), reads.end()); }
    std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds) override {
      if (reads_.empty()) return 0;
      done[0] = reads_.front();
      reads_.pop_front();
      if (*done[0]->cancelled) return 1;
      std::this_thread::sleep_for(delays_.of(done[0]->offset / kRowBytes));
      std::memset(done[0]->destination, 1, done[0]->size);
      return 1;
    }
    void wake() override {}

   private:
    const Delays delays_;
    std::deque<Read*> reads_;
  };

  const Delays delays_;
};

class Rows final : public Source {
 public:
  Rows(std::uint64_t count, Delays delays) : store_(delays), file_{"rows", count * kRowBytes, &store_} {
    info_.size = count;
    info_.identity = {"0", 1, count * kRowRecords, R"({"kind":"windows"})", ""};
    info_.schema = Schema::parse(R"([["token", "<u4"]])");
    info_.stored_record_bytes = 4;
    info_.shape.length = kRowRecords;
  }
  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned, Parts, Reads& out) const override {
    Read& read = out.emplace_back();
    read.file = &file_;
    read.offset = row.index * kRowBytes;
    read.size = kRowBytes;
    read.destination = row.records;
    return false;
  }
  void spans(const Row&, SpanTable&) const override {}

 private:
  mutable SleepyStore store_;
  const File file_;
  SourceInfo info_;
};

class InOrder final : public Order {
 public:
  explicit InOrder(std::uint64_t size) : size_(size) {}
  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = {first + i * stride, first + i * stride, 0, 0};
  }
  [[nodiscard]] std::uint64_t epoch_size() const override { return size_; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return position + 1; }
  [[nodiscard]] std::string identity(std::uint64_t) const override { return "{}"; }

 private:
  const std::uint64_t size_;
};

class LoaderContender {
 public:
  LoaderContender(std::uint64_t steps, Delays delays) : loader_(options(steps, delays)) {}
  /// Takes the next batch; whether it was ready.
  bool next() {
    batch_.reset();
    for (bool ready = true;; ready = false) {
      batch_ = loader_.poll();
      if (batch_) return ready;
      loader_.wait(std::chrono::milliseconds(50));
    }
  }

 private:
  static LoaderOptions options(std::uint64_t steps, Delays delays) {
    auto source = std::make_shared<Rows>(steps * kRows, delays);
    CursorOptions cursor;
    cursor.epochs = 1;
    cursor.schedule = {{0, kRows}};
    const std::array<SourceIdentity, 1> sources{source->info().identity};
    LoaderOptions options;
    options.job = std::make_shared<Job>(std::make_shared<InOrder>(steps * kRows), sources, cursor);
    options.formats = std::make_shared<const BatchFormats>(
        BatchFormats{BatchFormat(source, {FieldSpec{"token", "token", {'i', 8}}})});
    options.threads = kThreads;
    options.prefetch = kPrefetch;
    options.max_bytes = 64U << 20;
    return options;
  }

  Loader loader_;
  std::shared_ptr<Batch> batch_;
};

// --- what it is compared to: threads that take reads from a queue, four batches ahead, nothing else

class PoolContender {
 public:
  PoolContender(std::uint64_t steps, Delays delays) : delays_(delays), steps_(steps), left_(steps, kRows) {
    for (std::uint64_t i = 0; i < kPrefetch; ++i) ask();
    for (unsigned i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~PoolContender() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  PoolContender(const PoolContender&) = delete;
  PoolContender& operator=(const PoolContender&) = delete;

  bool next() {
    std::unique_lock lock(mutex_);
    const bool ready = left_[taken_] == 0;
    ready_.wait(lock, [this] { return left_[taken_] == 0; });
    ++taken_;
    ask();
    lock.unlock();
    work_.notify_all();
    return ready;
  }

 private:
  void ask() {  // for one more batch
    if (asked_ == steps_) return;
    for (std::uint64_t i = 0; i < kRows; ++i) rows_.push_back(asked_ * kRows + i);
    ++asked_;
  }
  void work() {
    std::vector<std::byte> row(kRowBytes);
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [this] { return ends_ || !rows_.empty(); });
      if (ends_) return;
      const std::uint64_t number = rows_.front();
      rows_.pop_front();
      lock.unlock();
      std::this_thread::sleep_for(delays_.of(number));
      std::memset(row.data(), 1, row.size());
      lock.lock();
      if (--left_[number / kRows] == 0) ready_.notify_one();
    }
  }

  const Delays delays_;
  const std::uint64_t steps_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable ready_;
  std::deque<std::uint64_t> rows_;
  std::vector<std::uint64_t> left_;  // rows of each batch
  std::uint64_t asked_ = 0;
  std::uint64_t taken_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

// --- the consumer

struct Waits {
  std::uint64_t stalls = 0;
  double waited_ms = 0;
  double longest_ms = 0;
};

template <typename Contender>
Waits walk(std::uint64_t steps, Delays delays) {
  Contender contender(steps + kWarmUp, delays);
  Waits waits;
  for (std::uint64_t step = 0; step < steps + kWarmUp; ++step) {
    const auto begin = Clock::now();
    const bool ready = contender.next();
    const double waited = ready ? 0 : Milliseconds(Clock::now() - begin).count();
    if (step >= kWarmUp) {
      if (waited > kStallMs) ++waits.stalls;
      waits.waited_ms += waited;
      waits.longest_ms = std::max(waits.longest_ms, waited);
    }
    std::this_thread::sleep_for(Milliseconds(kStepMs));
  }
  return waits;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int run(const std::string& who, std::uint64_t sections, std::uint64_t steps, std::uint64_t seed) {
  prctl(PR_SET_TIMERSLACK, 1UL);  // of this thread and those that it starts: sleeps are as long as they say
  std::vector<Waits> waits(sections);
  std::vector<std::thread> consumers;
  const auto begin = Clock::now();
  for (std::uint64_t i = 0; i < sections; ++i) {
    consumers.emplace_back([&, i] {
      const Delays delays(seed + i);
      waits[i] = who == "pool" ? walk<PoolContender>(steps, delays) : walk<LoaderContender>(steps, delays);
    });
  }
  for (std::thread& consumer : consumers) consumer.join();
  const double seconds = Milliseconds(Clock::now() - begin).count() / 1000;
  Waits all;
  for (const Waits& each : waits) {
    all.stalls += each.stalls;
    all.waited_ms += each.waited_ms;
    all.longest_ms = std::max(all.longest_ms, each.longest_ms);
  }
  fmt::print(
      "{{\"contender\": \"{}\", \"steps\": {}, \"stalls\": {}, \"waited_ms\": {:.3f}, \"longest_ms\": {:.3f}, "
      "\"seconds\": {:.3f}, \"cpu_us_a_step\": {:.3f}}}\n",
      who, sections * steps, all.stalls, all.waited_ms, all.longest_ms, seconds,
      cpu_seconds() * 1e6 / static_cast<double>(sections * (steps + kWarmUp)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string who = argc == 5 ? argv[1] : "";
  if (who != "loader" && who != "pool") {
    fmt::print(stderr, "usage: {} loader|pool SECTIONS STEPS SEED\n", argv[0]);
    return 2;
  }
  try {
    return run(who, std::stoull(argv[2]), std::stoull(argv[3]), std::stoull(argv[4]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
