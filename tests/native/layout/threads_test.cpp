// Sources of this folder under the engine, on real files: any number of threads gives what one gives. An executable of
// its own, so that ThreadSanitizer runs it without the rest of the folder.
#include "layout/documents/documents.h"
#include "layout/windows/windows.h"
#include "tests/native/layout/deliver.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace penstock::testing {
namespace {

using layout::SpanKind;

/// Shards enough that threads open files at the same time; spans of 0 to 12 records.
std::vector<ModelShard> many_shards(SpanKind kind) {
  std::vector<ModelShard> shards(12);
  for (std::uint64_t number = 0; number < shards.size(); ++number) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::uint64_t records = (i * 7 + number) % 13;
      const std::string entry = std::to_string(number) + "/" + std::to_string(i);
      if (kind == SpanKind::Ids) {
        shards[number].entries.push_back(entry);
        shards[number].ids.insert(shards[number].ids.end(), records, static_cast<std::uint32_t>(i));
      } else {
        shards[number].spans.push_back({records, entry});
      }
    }
  }
  return shards;
}

/// Each time a source of its own, which has kept nothing yet.
void expect_the_same_by_any_number_of_threads(const std::function<SourcePtr()>& make) {
  const std::vector<std::string> expected = deliver(make(), 1, 1);
  EXPECT_EQ(expected.size(), (2 * make()->info().size + 4) / 5);
  for (const unsigned prefetch : {1, 3, 8}) EXPECT_EQ(deliver(make(), 4, prefetch), expected) << prefetch;
}

TEST(ThreadsTest, WindowsOfATokenStream) {
  const Model model(SpanKind::None, many_shards(SpanKind::None));
  expect_the_same_by_any_number_of_threads([&] { return layout::make_windows(model.dataset(), 7, 1); });
}

TEST(ThreadsTest, WindowsOfTheCompactLayout) {
  const Model model(SpanKind::Compact, many_shards(SpanKind::Compact));
  expect_the_same_by_any_number_of_threads([&] { return layout::make_windows(model.dataset(), 7, 1); });
}

TEST(ThreadsTest, WindowsOfTheIdsLayout) {
  const Model model(SpanKind::Ids, many_shards(SpanKind::Ids));
  expect_the_same_by_any_number_of_threads([&] { return layout::make_windows(model.dataset(), 7, 1); });
}

TEST(ThreadsTest, Documents) {
  const Model model(SpanKind::Compact, many_shards(SpanKind::Compact));
  expect_the_same_by_any_number_of_threads([&] { return layout::make_documents(model.dataset()); });
}

}  // namespace
}  // namespace penstock::testing
