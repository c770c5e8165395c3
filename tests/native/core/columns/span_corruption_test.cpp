// Span corruption: what inputs and labels say together is the row, under the engine.
#include "core/columns/span_corruption.h"

#include "tests/native/core/columns/document_stream.h"
#include "tests/native/message_of.h"

#include <algorithm>
#include <set>

namespace penstock::testing {
namespace {

SpanCorruptionSpec corruption_spec(std::uint32_t item_bytes = 8) {
  SpanCorruptionSpec spec;
  spec.field = "token";
  spec.type = ScalarType{'i', item_bytes};
  spec.density = 0.3;
  spec.mean_length = 2.5;
  for (std::int64_t i = 0; i < 40; ++i) spec.sentinels.push_back(10'000 - i);
  spec.end = 2;
  spec.pad = 5;
  spec.seed = 3;
  return spec;
}

/// The row of which these are inputs and labels, without padding: every sentinel gives way to what it stands for.
template <typename T>
std::vector<std::int64_t> joined_again(const std::vector<T>& inputs, const std::vector<T>& labels) {
  const auto is_sentinel = [](T token) { return token > 9'000; };
  std::vector<std::int64_t> row;
  for (const T token : inputs) {
    if (!is_sentinel(token)) {
      row.push_back(token);
      continue;
    }
    auto at = std::find(labels.begin(), labels.end(), token);
    EXPECT_NE(at, labels.end());
    for (++at; at != labels.end() && !is_sentinel(*at); ++at) {
      if (*at != 2) row.push_back(*at);
    }
  }
  row.pop_back();  // the end
  return row;
}

template <typename T>
void expect_joined(std::uint64_t window) {
  const DocumentStream stream(2000, 1, 60);
  FieldRows rows = stream.rows();
  rows.length = window;
  for (std::uint64_t i = 0; i < 50; ++i) rows.lengths.push_back(i * 11 % 45);
  const FieldSource source(rows);
  std::vector<std::uint64_t> indices(source.info().size);
  std::iota(indices.begin(), indices.end(), 0);
  const auto batch = batch_of(rows, {MadeSpec(make_span_corruption(corruption_spec(sizeof(T))))}, indices);
  const auto inputs = values_of<T>(*batch, 0);
  const auto labels = values_of<T>(*batch, 0, 1);
  const auto mask = values_of<std::int64_t>(*batch, 0, 2);
  const std::uint64_t width = batch->arrays[0].shape.dims[1];
  const std::uint64_t targets = batch->arrays[0].shape.further[0].dims[1];
  std::set<std::vector<T>> distinct;
  for (const std::uint64_t i : indices) {
    std::vector<T> own;
    std::vector<T> said;
    for (std::uint64_t k = i * width; k < (i + 1) * width; ++k) {
      if (mask[k] == 1) {
        own.push_back(inputs[k]);
      } else {
        EXPECT_EQ(inputs[k], 5);
      }
    }
    for (std::uint64_t k = i * targets; k < (i + 1) * targets; ++k) {
      if (labels[k] != -100) said.push_back(labels[k]);
    }
    EXPECT_EQ(own.back(), 2);
    EXPECT_EQ(said.back(), 2);
    std::vector<std::int64_t> expected;
    for (std::uint64_t k = 0; k < source.count_of(i); ++k) expected.push_back(stream.tokens[source.first_of(i) + k]);
    EXPECT_EQ(joined_again(own, said), expected);
    distinct.insert(std::move(own));
  }
  EXPECT_GT(distinct.size(), 15U);
}

TEST(SpanCorruption, InputsAndLabelsTogetherAreTheRow) {
  for (const std::uint64_t window : {0, 7, 40}) {
    expect_joined<std::int64_t>(window);
    expect_joined<std::int32_t>(window);
  }
}

TEST(SpanCorruption, WhatCannotBeIsRefused) {
  const auto refused = [](auto change, bool packed = false) {
    SpanCorruptionSpec spec = corruption_spec();
    change(spec);
    FieldRows rows = DocumentStream(500).rows();
    rows.length = 400;
    SourceInfo info = FieldSource(rows).info();
    if (packed) info.packed_multiple = 1;
    return message_of([&] { (void)make_span_corruption(spec)->make(info); }, ErrorKind::InvalidArgument);
  };
  EXPECT_EQ(refused([](auto& spec) { spec.density = 0; }), "SpanCorruption(density=0): must be above 0 and below 1");
  EXPECT_EQ(refused([](auto& spec) { spec.mean_length = 0.5; }), "SpanCorruption(mean_length=0.5): must be at least 1");
  EXPECT_EQ(refused([](auto& spec) { spec.sentinels.clear(); }), "SpanCorruption: there are no sentinels");
  EXPECT_EQ(refused([](auto&) {}), "SpanCorruption: 40 sentinels for 48 spans of a window of 400");
  EXPECT_EQ(refused([](auto& spec) { spec.field = "none"; }), "the records have no field none");
  EXPECT_NE(refused([](auto&) {}, true).find("packed rows are several documents"), std::string::npos);
}

}  // namespace
}  // namespace penstock::testing
