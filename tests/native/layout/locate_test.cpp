// locate_rows: spans and first records are those of the rows that are read, and records take no room.
#include "core/base/error.h"
#include "core/engine/read_rows.h"
#include "layout/documents/documents.h"
#include "layout/packed/packed.h"
#include "layout/windows/windows.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {
namespace {

using layout::SpanKind;
using SourcePtr = std::shared_ptr<const Source>;

Model some_documents() {
  ModelShard one;
  ModelShard other;
  for (const std::uint64_t length : {3, 0, 9, 2, 4, 1, 25}) one.spans.push_back({length, "entry"});
  for (const std::uint64_t length : {0, 5, 5, 5, 10}) other.spans.push_back({length, "entry"});
  return {SpanKind::Compact, {std::move(one), {}, std::move(other)}};
}

SourcePtr packed(const layout::DatasetPtr& dataset) {
  layout::DatasetPacker packer(dataset, {.window = 10}, {});
  while (packer.step(1)) {
  }
  const layout::PackHeader header = packer.header();
  auto table = std::make_shared<const layout::PackTable>(header, std::move(packer.rows()));
  return layout::make_packed(dataset, std::move(table), {});
}

// What each row is, in words.
std::vector<std::string> rows_of(const Batch& batch) {
  std::vector<std::string> found;
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    const Row& row = batch.rows[i];
    std::string text = std::to_string(batch.row_format(i).source->first_record(row, batch.picks[i].index));
    for (const Span& span : row.spans) {
      text += " " + std::to_string(span.shard) + "/" + std::to_string(span.entry) + ":" + std::to_string(span.start) +
              "-" + std::to_string(span.stop) + "+" + std::to_string(span.offset);
    }
    found.push_back(std::move(text));
  }
  return found;
}

std::vector<std::uint64_t> all_of(const Source& source) {
  std::vector<std::uint64_t> indices(source.info().size);
  for (std::uint64_t i = 0; i < indices.size(); ++i) indices[i] = i;
  return indices;
}

void expect_located(const Model& model, const std::function<SourcePtr(const layout::DatasetPtr&)>& make) {
  const SourcePtr source = make(model.dataset());
  auto formats = std::make_shared<BatchFormats>();
  formats->emplace_back(source, std::vector<ColumnSpec>());
  const std::vector<std::uint64_t> indices = all_of(*source);
  const std::vector<std::string> read = rows_of(*read_rows(formats, indices));
  std::vector<Pick> picks;
  picks.reserve(indices.size());
  for (const std::uint64_t index : indices) picks.push_back({index, 0, 0, 0});
  const auto batch = locate_rows(std::vector{source}, picks, Parts::Spans);
  EXPECT_EQ(rows_of(*batch), read);
  EXPECT_LE(batch->slab.bytes(), 4096U);
}

TEST(LocateRows, TheyLieWhereTheyAreRead) {
  expect_located(some_documents(), [](const auto& dataset) { return layout::make_windows(dataset, 7, 1, {}); });
  expect_located(some_documents(), [](const auto& dataset) { return layout::make_documents(dataset, {}, {}); });
  expect_located(some_documents(), packed);
}

TEST(LocateRows, EachEpochHasItsPhase) {
  const Model model = some_documents();
  const SourcePtr source = layout::make_windows_with_phase(model.dataset(), 5, 0, {}, 5);
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    const auto batch = locate_rows(std::vector{source}, {{2, 0, 0, epoch}}, Parts::Spans);
    const auto first = static_cast<std::uint64_t>(source->first_record(batch->rows[0], 2));
    const std::vector<Span> expected = model.spans(first, first + 5);
    ASSERT_EQ(batch->rows[0].spans.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(batch->rows[0].spans[i].entry, expected[i].entry);
      EXPECT_EQ(batch->rows[0].spans[i].start, expected[i].start);
    }
  }
}

TEST(LocateRows, RowsOfSeveralSourcesAreOneBatchWhereTheyAreAlike) {
  const Model model = some_documents();
  const Model other = some_documents();
  const std::vector<SourcePtr> sources{layout::make_windows(model.dataset(), 7, 0, {}),
                                       layout::make_windows(other.dataset(), 7, 0, {}),
                                       layout::make_windows(other.dataset(), 3, 0, {})};
  const auto batch = locate_rows(sources, {{1, 0, 1, 0}, {1, 0, 0, 0}}, Parts::Spans);
  EXPECT_EQ(rows_of(*batch)[0], rows_of(*batch)[1]);
  EXPECT_EQ(locate_rows(sources, {}, Parts::Spans)->plan.rows, 0U);
  EXPECT_EQ(locate_rows(sources, {{4, 0, 2, 0}}, Parts::None)->row_format(0).shape.length, 3U);
  for (const std::vector<Pick>& wrong : {std::vector<Pick>{{1, 0, 0, 0}, {1, 0, 2, 0}}, {{99, 0, 0, 0}}}) {
    EXPECT_THROW(static_cast<void>(locate_rows(sources, wrong, Parts::Spans)), Error);
  }
}

}  // namespace
}  // namespace penstock::testing
