// What counting reads costs: a row reader whose reads are counted beside one whose are not, over the same warm windows.
//   penstock_counting FILE WINDOW PAIRS
// FILE holds tokens of u32. Both walk the same batches in turn, PAIRS times, on this thread; time is that of the
// thread's clock, which other processes do not move. Prints a line of JSON for each pair: ns a window, {"plain",
// "counted"}.
#include "core/engine/batch_memory.h"
#include "core/engine/batch_work.h"
#include "core/engine/metrics.h"
#include "core/engine/row_reader.h"
#include "core/io/local/local_store.h"
#include "core/io/open_store.h"
#include "layout/formats.h"
#include "layout/windows/windows.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

namespace {

using namespace penstock;

constexpr std::uint64_t kRows = 64;    // of a batch
constexpr std::uint64_t kBatches = 4;  // of one half of a pair: less than a scheduler lets a thread run at a time

std::uint64_t thread_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

class Walk {
 public:
  Walk(std::shared_ptr<const Source> source, const StoreChoice& through, ReadCounters* counters)
      : reader_([this](const RowReader::Ended& ended) { failed_ |= ended.error != nullptr; }, through,
                ChannelMode::MayWait, counters),
        batch_(std::make_shared<Batch>()) {
    auto formats = std::make_shared<BatchFormats>();
    formats->emplace_back(std::move(source), std::vector<ColumnSpec>(), Parts::Records);
    batch_->formats = std::move(formats);
    batch_->format = &batch_->formats->front();
    batch_->plan.rows = batch_->plan.valid = kRows;
    batch_->picks.resize(kRows);
    ensure_slab(*batch_, needed_bytes(*batch_));
  }

  /// ns of the thread's time a window.
  double go(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::uint64_t size = batch_->format->source->info().size;
    const std::uint64_t begin = thread_ns();
    for (std::uint64_t k = 0; k < kBatches; ++k) {
      for (Pick& pick : batch_->picks) pick.index = random() % size;
      BatchWork(*batch_).prepare_rows();
      BatchWork(*batch_).place();
      for (std::uint64_t row = 0; row < kRows; ++row) reader_.start(batch_, row, RowReader::Part::Whole);
      while (!reader_.is_idle()) reader_.pump(std::chrono::milliseconds(50));
    }
    const std::uint64_t end = thread_ns();
    if (failed_) throw std::runtime_error("a window could not be read");
    return static_cast<double>(end - begin) / static_cast<double>(kBatches * kRows);
  }

 private:
  bool failed_ = false;
  RowReader reader_;
  std::shared_ptr<Batch> batch_;
};

void measure(const std::string& file, std::uint64_t window, std::uint64_t pairs) {
  const auto local = std::make_shared<LocalStore>();
  const auto dataset = layout::open_as("raw", {open_store(file, local)}, {R"([["token","<u4"]])", ""});
  const auto source = layout::make_windows(dataset, window, 0, {});
  const std::shared_ptr<ByteStore> pread = local->reading_by(Reader::Pread);
  const StoreChoice through = [&](ByteStore& files) -> ByteStore& { return &files == local.get() ? *pread : files; };
  ReadCounters counters;
  Walk plain(source, through, nullptr);
  Walk counted(source, through, &counters);
  for (Walk* walk : {&plain, &counted}) walk->go(0);
  for (std::uint64_t pair = 1; pair <= pairs; ++pair) {
    // Either comes first as often.
    const bool swapped = pair % 2 == 0;
    const double first = (swapped ? counted : plain).go(pair);
    const double second = (swapped ? plain : counted).go(pair);
    fmt::print("{{\"plain\": {:.1f}, \"counted\": {:.1f}}}\n", swapped ? second : first, swapped ? first : second);
  }
  Metrics sums;
  counters.add_to(sums);
  if (sums.reads + sums.merged_reads != (pairs + 1) * kBatches * kRows) throw std::runtime_error("reads not counted");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "penstock_counting FILE WINDOW PAIRS\n");
    return 2;
  }
  try {
    measure(argv[1], std::stoull(argv[2]), std::stoull(argv[3]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
