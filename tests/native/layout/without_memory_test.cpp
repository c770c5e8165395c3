// Threads without memory: the n-th allocation of a loader's threads fails, alone or with all that follow, for n = 1, 2,
// … until nothing fails any more. Each time an error comes from poll() or none was needed; when memory is there again
// every batch comes, once and right. Nothing ends the process, hangs or stays allocated.
//
// A sweep runs in a child, which is started again behind a trial that ended it. PENSTOCK_FAULTS=full tries every n,
// else one in some, and prints what was counted.
#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "core/io/local/ring.h"
#include "layout/dataset.h"
#include "shuffle/blocks.h"
#include "tests/native/layout/deliver.h"
#include "tests/native/layout/drive.h"
#include "tests/native/layout/failing_allocations.h"
#include "writer/shards/dataset_writer.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

namespace penstock::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 30s;      // a trial takes milliseconds
constexpr unsigned kMostErrors = 3;  // that are asked for before there is memory again

enum class Rows { Windows, Documents };
enum class Who { Threads, ThreadsAndHelp, All };

struct Trials {
  const char* layout = "compact";
  Rows rows = Rows::Windows;
  Reader reader = Reader::Pread;
  std::uint64_t block = 0;  // 0: uniform
  bool lends = false;
  unsigned threads = 1;
  Who fails = Who::Threads;
  std::uint64_t window = 16;
  std::uint64_t batch = 5;
  bool columns = false;
};

std::string name_of(const Trials& setup) {
  const char* const readers[] = {"Auto", "Pread", "Uring", "Direct", "Mmap"};
  const char* const failing[] = {"", "Helped", "AndConsumer"};
  return fmt::format("{}{}{}{}{}{}{}{}{}", setup.layout, setup.rows == Rows::Windows ? "Windows" : "Documents",
                     setup.block > 0 ? "Blocks" : "Uniform", readers[static_cast<int>(setup.reader)],
                     setup.lends ? "Lent" : "", setup.columns ? "Columns" : "", failing[static_cast<int>(setup.fails)],
                     setup.threads, setup.window == 1 ? fmt::format("By{}", setup.batch) : "");
}

/// What a sweep has done so far, in memory that the child shares.
struct Counts {
  std::atomic<std::uint64_t> at{1};  // the trial's n
  std::uint64_t tried = 0;
  std::uint64_t reported = 0;  // an error came
  std::uint64_t failures = 0;  // trials that were not right
  bool ended = false;
  char note[200] = {};  // of the first that was not right
};

class WithoutMemory : public ::testing::TestWithParam<Trials> {
 protected:
  WithoutMemory() {
    writer::WriterOptions options;
    options.format = {"stream", GetParam().layout, Schema::parse(R"([["token","<u4"]])"), R"({"name":"raw"})"};
    options.shard_bytes = 1'500;
    if (GetParam().columns) {
      options.format.columns = layout::parse_column_types(R"([["name","category"],["value","<f8",[3]]])");
      options.categories = {{"a", "b"}, {}};
    }
    writer::DatasetWriter writer(folder_.path("data"), options);
    for (std::uint32_t i = 0; i < 60; ++i) {
      const std::vector<std::uint32_t> tokens(1 + i * 7 % 23, i);
      const std::string entry(i * 5 % 40, static_cast<char>('a' + i % 26));
      const std::int32_t code = static_cast<std::int32_t>(i % 3) - 1;
      const std::array<double, 3> value{1.0 * i, 2.0 * i, 3.0 * i};
      writer::NamedValues values;
      if (GetParam().columns) {
        values = {{std::as_bytes(std::span(&code, 1)), std::as_bytes(std::span(value))}, {{"a", "b"}, {}}};
      }
      writer.append(std::as_bytes(std::span(tokens)), std::as_bytes(std::span(entry)), values);
    }
    writer.commit();
    void* const shared = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    counts_ = new (shared) Counts;
  }
  ~WithoutMemory() override { ::munmap(counts_, sizeof *counts_); }

  /// Of a source and a store that have kept and opened nothing yet.
  [[nodiscard]] LoaderOptions options() const {
    const Trials& setup = GetParam();
    const layout::DatasetPtr dataset = layout::open_dataset(local(folder_.path("data")), layout::Checks::All);
    const std::vector<std::string> columns =
        setup.columns ? std::vector<std::string>{"value", "name"} : std::vector<std::string>();
    const SourcePtr source = setup.rows == Rows::Windows ? layout::make_windows(dataset, setup.window, 1, columns)
                                                         : layout::make_documents(dataset, columns);
    const std::uint64_t size = source->info().size;
    auto formats = std::make_shared<BatchFormats>();
    std::vector<ColumnSpec> specs{FieldSpec{"token", "token", {'i', 8}}, SequenceSpec()};
    if (setup.columns && setup.rows == Rows::Documents) specs.emplace_back(ValueSpec{"name"});
    formats->emplace_back(source, std::move(specs));
    LoaderOptions options;
    CursorOptions cursor;
    cursor.epochs = 1;
    cursor.schedule = {{0, setup.batch}};
    std::shared_ptr<const Order> order = std::make_shared<shuffle::Uniform>(size, 1);
    if (setup.block > 0) {
      order = std::make_shared<shuffle::Blocks>(size, 1, shuffle::BlocksShape{setup.block, 4 * setup.block, 1});
    }
    options.job = std::make_shared<Job>(order, std::span(&source->info().identity, 1), std::move(cursor));
    options.formats = formats;
    options.max_bytes = 1 << 20;
    options.threads = setup.threads;
    options.cores = 2;
    options.prefetch = 3;
    options.through = [store = LocalStore().reading_by(setup.reader)](ByteStore&) -> ByteStore& { return *store; };
    if (setup.lends) {
      options.lend = [](Slab& slab, std::uint64_t bytes) {
        auto memory = std::shared_ptr<std::byte[]>(new std::byte[bytes + 1]);
        slab.lend(memory.get(), bytes, memory);
      };
    }
    return options;
  }

  struct Trial {
    std::vector<std::string> batches;
    unsigned errors = 0;
    bool moved = false;  // the position, by an error
    std::string other;   // an error that says something else
    std::uint64_t failed = 0;
  };

  /// The n-th allocation fails; 0: none.
  [[nodiscard]] Trial run(std::uint64_t n, bool following) const {
    const Who who = GetParam().fails;
    Trial trial;
    Loader loader(options());
    if (n > 0) fail_allocations(n, following);
    while (true) {
      const std::uint64_t position = loader.position();
      std::shared_ptr<Batch> batch;
      bool failed = false;
      try {
        count_allocations_here(who == Who::All);
        batch = loader.poll();
        if (!batch && !loader.ended()) {
          count_allocations_here(who != Who::Threads);
          loader.wait(50ms);
        }
      } catch (const Error& error) {
        failed = true;
        const bool of_memory = error.kind() == ErrorKind::InvalidArgument || error.error_number() == ENOMEM;
        if (!of_memory) trial.other = error.what();
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      count_allocations_here(false);
      if (failed) {
        trial.moved |= loader.position() != position;
        if (++trial.errors == kMostErrors) stop_failing_allocations();
      } else if (batch) {
        trial.batches.push_back(text_of(*batch));
      } else if (loader.ended()) {
        break;
      }
    }
    stop_failing_allocations();
    trial.failed = n > 0 ? failed_allocations() : 0;
    return trial;
  }

  void fail(const std::string& what) const {
    if (counts_->failures++ > 0) return;
    const std::string text = fmt::format("{} at n = {}", what, counts_->at.load());
    std::strncpy(counts_->note, text.c_str(), sizeof counts_->note - 1);
  }

  void check(const Trial& trial, const std::vector<std::string>& expected) const {
    ++counts_->tried;
    if (trial.errors > 0) ++counts_->reported;
    if (trial.moved) fail("an error moved the position");
    if (!trial.other.empty()) fail(trial.other);
    if (trial.batches != expected) {
      fail(fmt::format("{} batches of {}, or other ones", trial.batches.size(), expected.size()));
    }
  }

  static std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  }

  /// In the child.
  void sweep(bool following, bool is_full) const {
    count_allocations_here(false);
    const std::vector<std::string> expected = run(0, false).batches;
    static_cast<void>(run(0, false));  // what is kept for ever is there now
    const std::ptrdiff_t descriptors = open_descriptors();
    const std::int64_t before = blocks_in_use();
    for (std::uint64_t n = counts_->at; true; n += 1 + n / (is_full ? 1'000 : 12)) {
      counts_->at = n;
      {
        const Trial trial = run(n, following);
        if (trial.failed == 0) break;
        check(trial, expected);
      }
      if (blocks_in_use() > before) fail(fmt::format("{} blocks are left", blocks_in_use() - before));
      if (open_descriptors() > descriptors) fail("a descriptor is left open");
    }
    counts_->ended = true;
  }

  /// Starts a child behind the trial that ended the last one.
  void sweep_in_children(bool following, bool is_full) {
    while (!counts_->ended && counts_->failures < 20) {
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        sweep(following, is_full);
        ::_exit(0);
      }
      std::uint64_t at = counts_->at;
      auto since = std::chrono::steady_clock::now();
      int status = 0;
      while (::waitpid(child, &status, WNOHANG) == 0) {
        std::this_thread::sleep_for(5ms);
        const auto now = std::chrono::steady_clock::now();
        if (std::exchange(at, counts_->at.load()) != counts_->at) since = now;
        if (now - since > kPatience) ::kill(child, SIGKILL);
      }
      if (status == 0) continue;
      fail(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? "hung" : "the process ended");
      ++counts_->at;
    }
  }

  const TemporaryFolder folder_;
  Counts* counts_ = nullptr;
};

TEST_P(WithoutMemory, IsAnErrorAndNothingIsLost) {
  const char* const faults = std::getenv("PENSTOCK_FAULTS");
  const bool is_full = faults != nullptr && std::string(faults) == "full";
  if (GetParam().reader == Reader::Uring || GetParam().reader == Reader::Direct) {
    if (const int why = Ring::refusal(); why != 0) GTEST_SKIP() << "io_uring is refused here: " << std::strerror(why);
  }
  for (const bool following : {true, false}) {
    new (counts_) Counts;
    sweep_in_children(following, is_full);
    if (is_full) fmt::print("{} tried, {} reported\n", counts_->tried, counts_->reported);
    EXPECT_TRUE(counts_->ended);
    EXPECT_GT(counts_->reported, 5U);
    EXPECT_EQ(counts_->failures, 0U) << (following ? "with all that follow: " : "alone: ") << counts_->note;
  }
}

constexpr Trials kTrials[] = {
    {},
    {.layout = "ids"},
    {.rows = Rows::Documents},
    {.block = 4},
    {.rows = Rows::Documents, .block = 4},
    {.layout = "ids", .block = 4, .threads = 3},
    {.rows = Rows::Documents, .block = 4, .threads = 3},
    {.threads = 3},
    {.rows = Rows::Documents, .threads = 3},
    {.lends = true},
    {.rows = Rows::Documents, .lends = true},
    {.rows = Rows::Documents, .block = 4, .lends = true, .threads = 3},
    {.reader = Reader::Mmap},
    {.rows = Rows::Documents, .reader = Reader::Mmap, .block = 4},
    {.reader = Reader::Uring},
    {.rows = Rows::Documents, .reader = Reader::Uring, .block = 4},
    {.reader = Reader::Direct, .block = 4},
    {.reader = Reader::Auto},
    {.rows = Rows::Documents, .columns = true},
    {.columns = true},
    {.layout = "ids", .block = 4, .columns = true},
    {.rows = Rows::Documents, .reader = Reader::Auto, .block = 4, .threads = 3, .columns = true},
    {.rows = Rows::Documents, .fails = Who::All, .columns = true},
    {.fails = Who::ThreadsAndHelp},
    {.reader = Reader::Mmap, .block = 4, .fails = Who::ThreadsAndHelp},
    {.fails = Who::All},
    {.rows = Rows::Documents, .lends = true, .fails = Who::All},
    {.block = 4, .threads = 3, .fails = Who::All},
    // More rows that fail than C++ has memory of its own for exceptions.
    {.block = 256, .window = 1, .batch = 300},
    // So many batches and stretches that queues of them grow.
    {.block = 1, .window = 1},
    {.lends = true, .fails = Who::All, .window = 1},
    {.block = 1, .threads = 3, .fails = Who::All, .window = 1},
};

INSTANTIATE_TEST_SUITE_P(Threads, WithoutMemory, ::testing::ValuesIn(kTrials),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace penstock::testing
