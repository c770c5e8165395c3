// Slices of rows: chunks by their definition; slices of all ranks are the row; columns of a slice are the columns'
// part.
#include "core/rows/row_slice.h"

#include "core/columns/sliced_column.h"
#include "tests/native/core/columns/document_stream.h"
#include "tests/native/message_of.h"

namespace penstock::testing {
namespace {

using Layout = RowSlice::Layout;
using Numbers = std::vector<std::uint64_t>;
using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

SourceInfo windows(std::uint64_t window, std::uint64_t lookahead = 0, std::uint64_t packed_multiple = 0) {
  SourceInfo info;
  info.path = "memory";
  info.shape = {.ragged = false, .length = window + lookahead, .lead = 0, .tail = 0};
  info.packed_multiple = packed_multiple;
  return info;
}

Numbers numbers_of(const RowSlice& slice, const SpanTable& spans = {}) {
  Numbers numbers;
  slice.for_each(spans, [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) numbers.push_back(i);
  });
  return numbers;
}

SpanTable spans_of(const Ranges& bounds) {
  SpanTable spans;
  for (const auto& [start, stop] : bounds) spans.push_back({.start = start, .stop = stop});
  return spans;
}

TEST(RowSliceTest, ChunksAreThoseOfTheDefinitionAndThoseOfAllRanksTheRow) {
  const SourceInfo info = windows(16, 1);
  EXPECT_EQ(numbers_of({{0, 2, Layout::Zigzag}, info, 1}), (Numbers{0, 1, 2, 3, 12, 13, 14, 15}));
  EXPECT_EQ(numbers_of({{1, 2, Layout::Zigzag}, info, 1}), (Numbers{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(numbers_of({{1, 4, Layout::Contiguous}, info, 1}), (Numbers{4, 5, 6, 7}));
  const SpanTable spans = spans_of({{0, 3}, {4, 8}});  // the first takes 4 records, the rest of the row is padding
  const SourceInfo packed = windows(16, 0, 4);
  EXPECT_EQ(numbers_of({{0, 2, Layout::ZigzagDocuments}, packed, 0}, spans), (Numbers{0, 3, 4, 7, 8, 9, 14, 15}));
  EXPECT_EQ(numbers_of({{1, 2, Layout::ZigzagDocuments}, packed, 0}, spans), (Numbers{1, 2, 5, 6, 10, 11, 12, 13}));
  for (const Layout layout : {Layout::Contiguous, Layout::Zigzag, Layout::ZigzagDocuments}) {
    for (const std::uint64_t size : {1, 2, 3, 4}) {
      const SourceInfo info = windows(48 * size, 0, 2 * size);
      const SpanTable spans = spans_of({{0, 5 * size}, {6 * size, 7 * size}, {8 * size, 40 * size}});
      Numbers all;
      for (std::uint64_t rank = 0; rank < size; ++rank) {
        const Numbers own = numbers_of({{rank, size, layout}, info, 0}, spans);
        EXPECT_EQ(own.size(), 48U);
        EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
        all.insert(all.end(), own.begin(), own.end());
      }
      std::sort(all.begin(), all.end());
      Numbers wanted(48 * size);
      std::iota(wanted.begin(), wanted.end(), std::uint64_t{0});
      EXPECT_EQ(all, wanted);
    }
  }
}

TEST(RowSliceTest, WhatIsReadIsTheSliceAndTheTargetsOfItsChunks) {
  const auto read = [](const RowSlice& slice, std::uint64_t begin, std::uint64_t end) {
    Ranges found;
    slice.for_each_read(begin, end, [&](std::uint64_t from, std::uint64_t to) { found.emplace_back(from, to); });
    return found;
  };
  const RowSlice slice = RowSlice({0, 2, Layout::Zigzag}, windows(16, 1), 1).reading_after(1);
  EXPECT_EQ(read(slice, 0, 17), (Ranges{{0, 5}, {12, 17}}));
  EXPECT_EQ(read(slice, 0, 2), (Ranges{{0, 2}})) << "a part of the row in one shard …";
  EXPECT_EQ(read(slice, 2, 14), (Ranges{{2, 5}, {12, 14}})) << "… and in the next one";
  EXPECT_EQ(read(slice, 6, 12), Ranges());
  // A document that begins after a chunk is not read for it.
  const RowSlice packed = RowSlice({0, 2, Layout::Zigzag}, windows(16, 0, 1), 0).reading_after(1);
  EXPECT_EQ(read(packed, 0, 4), (Ranges{{0, 4}}));
  EXPECT_EQ(read(packed, 4, 11), Ranges());
  EXPECT_EQ(read(packed, 11, 16), (Ranges{{12, 16}}));
}

TEST(RowSliceTest, WhatCannotBeSharedSaysWhatWouldDo) {
  const auto refused = [](const RowSlice::Spec& spec, const SourceInfo& info, const char* words, std::uint64_t after) {
    expect_error([&] { RowSlice(spec, info, after); }, ErrorKind::InvalidArgument, words);
  };
  refused({0, 3, Layout::Zigzag}, windows(16, 1), "16 is no multiple of 6: use one of 18", 1);
  refused({0, 2, Layout::ZigzagDocuments}, windows(16), "packed(…, multiple_of=4)", 0);
  refused({0, 2, Layout::ZigzagDocuments}, windows(16, 0, 2), "multiples of 2", 0);
  refused({2, 2, Layout::Zigzag}, windows(16), "rank 2 of size 2", 0);
  SourceInfo documents = windows(16);
  documents.shape.ragged = true;
  refused({0, 2, Layout::Zigzag}, documents, "documents", 0);
}

// --- columns

constexpr std::uint64_t kWindow = 12;
constexpr std::uint64_t kRank = 2;

// Rows of 12 records and one of lookahead, the columns that a training step has.
BatchFormat format(const std::shared_ptr<const RowSlice>& slice) {
  auto source = std::make_shared<MemorySource>(7, kWindow + 1, std::make_shared<Behaviour>());
  const FieldSpec labels{"labels", "token", {'i', 8}, 1, 1, true};
  return {source,
          {FieldSpec{"inputs", "token", {'i', 8}, 0, 1}, TargetSpec{.labels = labels, .mask = true, .shorten = 1},
           SequenceSpec{SequenceSpec::Kind::Positions, 1}, SequenceSpec{SequenceSpec::Kind::Documents, 1},
           SequenceSpec{SequenceSpec::Kind::Bounds, 1}},
          Parts::All,
          slice};
}

std::shared_ptr<Batch> first_batch(const std::shared_ptr<const RowSlice>& slice) {
  Case setup;
  setup.count = 7;
  setup.batch = 4;
  setup.epochs = 1;
  Loader loader(options_of(setup, std::make_shared<IdentityOrder>(7, 1), {format(slice)}));
  next(loader);
  return next(loader);  // rows 4 to 6, and one of padding
}

template <typename T>
void expect_part(const Batch& whole, const Batch& sliced, const RowSlice& slice, std::size_t column, std::size_t part) {
  const auto all = values_of<T>(whole, column, part);
  std::vector<T> wanted;
  for (std::uint64_t row = 0; row < 4; ++row) {
    for (const std::uint64_t i : numbers_of(slice)) wanted.push_back(all[row * kWindow + i]);
  }
  EXPECT_EQ(values_of<T>(sliced, column, part), wanted) << "column " << column << ", array " << part;
}

TEST(RowSliceTest, ColumnsOfASliceAreTheColumnsPartAndBoundsAreTheRows) {
  const auto whole = first_batch(nullptr);
  for (const Layout layout : {Layout::Contiguous, Layout::Zigzag}) {
    const auto slice =
        std::make_shared<const RowSlice>(RowSlice::Spec{kRank, 3, layout}, windows(kWindow, 1), std::uint64_t{1});
    const auto sliced = first_batch(slice);
    expect_part<std::int64_t>(*whole, *sliced, *slice, 0, 0);
    expect_part<std::int64_t>(*whole, *sliced, *slice, 1, 0);
    expect_part<std::uint8_t>(*whole, *sliced, *slice, 1, 1);
    expect_part<std::int32_t>(*whole, *sliced, *slice, 2, 0);
    expect_part<std::int32_t>(*whole, *sliced, *slice, 3, 0);
    EXPECT_EQ(values_of<std::int32_t>(*sliced, 4), values_of<std::int32_t>(*whole, 4));
    EXPECT_EQ(sliced->arrays[0].shape.dims, (Dims{4, 4}));
  }
}

}  // namespace
}  // namespace penstock::testing
