// What a condition chooses over several shards and pieces, by any number of threads; and the windows in what it chose.
#include "layout/where/choosing.h"

#include "layout/where/choosing_windows.h"
#include "tests/native/layout/drive.h"
#include "writer/shards/dataset_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace penstock::testing {
namespace {

using layout::Choosing;
using layout::ChoosingWindows;

constexpr std::uint64_t kCount = 300'000;  // pieces of more than one read

// Document i has i % 4 records, the score i, and one of three plates or none.
class ChoosingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    writer::WriterOptions options;
    options.format = {"stream", "compact", Schema::parse(R"([["token","|u1"]])"), R"({"name":"raw"})"};
    options.format.columns = {{"score", {'i', 4}, {}}, {"plate", {'i', 4}, {}, true}};
    options.shard_bytes = 1 << 20;
    writer::DatasetWriter writer(folder_.path("d"), options);
    constexpr std::uint64_t kBatch = 10'000;
    for (std::uint64_t first = 0; first < kCount; first += kBatch) {
      std::vector<std::uint64_t> lengths;
      std::vector<std::uint64_t> ends(kBatch);
      std::vector<std::int32_t> scores;
      std::vector<std::int32_t> plates;
      std::uint64_t records = 0;
      for (std::uint64_t i = first; i < first + kBatch; ++i) {
        lengths.push_back(i % 4);
        records += i % 4;
        scores.push_back(static_cast<std::int32_t>(i));
        plates.push_back(static_cast<std::int32_t>(i % 4) - 1);
      }
      const std::vector<std::byte> stream(records);
      const writer::NamedValues values{{std::as_bytes(std::span(scores)), std::as_bytes(std::span(plates))},
                                       {{}, {"one", "two", "three"}}};
      writer.append_batch(stream, lengths, {}, ends, values);
    }
    writer.commit();
    dataset_ = layout::open_dataset(local(folder_.path("d")));
    ASSERT_GT(dataset_->shards.size(), 2U);
  }

  [[nodiscard]] Chosen chosen(const std::string& condition, unsigned threads, std::uint64_t step) const {
    Choosing choosing(dataset_, condition, {});
    std::atomic<std::uint64_t> next{0};
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i) {
      running.emplace_back([&] {
        for (std::uint64_t first = next.fetch_add(step); first < kCount; first = next.fetch_add(step)) {
          choosing.look(first, std::min(step, kCount - first));
        }
      });
    }
    for (std::thread& each : running) each.join();
    return choosing.chosen();
  }

  TemporaryFolder folder_;
  layout::DatasetPtr dataset_;
};

TEST_F(ChoosingTest, AnyNumberOfThreadsAndAnyStepsChooseTheSame) {
  const std::string condition = "plate <> 'two' and (score < 150000 or score in (299999, 299998, 299997))";
  for (const auto& [threads, step] : {std::pair(1U, std::uint64_t{1} << 40),
                                      {1U, std::uint64_t{64}},
                                      {4U, std::uint64_t{6'400}},
                                      {3U, std::uint64_t{131'136}}}) {
    const Chosen found = chosen(condition, threads, step);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const bool is_named = i % 4 != 0 && i % 4 != 2;  // "one" or "three"
      ASSERT_EQ(found.has(i), is_named && (i < 150'000 || i >= 299'997)) << i << " by " << threads;
    }
  }
}

TEST_F(ChoosingTest, WindowsOfChosenDocumentsAreFoundWhateverTheSteps) {
  const auto documents =
      std::make_shared<const Chosen>(chosen("plate is null or score < 100000 or score > 200000", 2, 64'000));
  std::vector<bool> is_chosen;  // by record
  for (std::uint64_t i = 0; i < kCount; ++i) is_chosen.insert(is_chosen.end(), i % 4, documents->has(i));
  ASSERT_EQ(is_chosen.size(), dataset_->record_count());
  for (const auto& [window, lookahead] : {std::pair<std::uint64_t, std::uint64_t>(1, 0), {7, 1}, {1'000, 3}}) {
    for (const std::uint64_t step : {std::uint64_t{1} << 40, std::uint64_t{7'777}}) {
      ChoosingWindows windows(dataset_, documents, window, lookahead, {});
      while (windows.step(step)) {
      }
      const Chosen found = windows.chosen();
      ASSERT_EQ(found.size(), (is_chosen.size() - lookahead) / window);
      for (std::uint64_t i = 0; i < found.size(); ++i) {
        const auto begin = is_chosen.begin() + static_cast<std::ptrdiff_t>(i * window);
        const auto end = begin + static_cast<std::ptrdiff_t>(window + lookahead);
        ASSERT_EQ(found.has(i), std::all_of(begin, end, [](bool each) { return each; })) << i << " of " << window;
      }
    }
  }
}

TEST_F(ChoosingTest, DocumentsThatAreNotThereAreRefused) {
  Choosing choosing(dataset_, "score > 1", {});
  for (const auto& [first, count] : {std::pair<std::uint64_t, std::uint64_t>(0, kCount + 1),
                                     {1, 64},
                                     {0, 65},
                                     {UINT64_MAX - 63, 64},
                                     {kCount + 32, 0}}) {
    expect_error([&, first = first, count = count] { choosing.look(first, count); }, ErrorKind::InvalidArgument,
                 "multiples of 64 are wanted");
  }
  const auto few = std::make_shared<const Chosen>(std::vector<std::uint64_t>{1}, 1);
  expect_error([&] { ChoosingWindows(dataset_, few, 4, 0, {}); }, ErrorKind::InvalidArgument,
               "a choice among 1 documents, it has 300,000");
}

}  // namespace
}  // namespace penstock::testing
