// Span corruption: what T5 trains on. Spans of a row's tokens are cut out and have one sentinel each in their place;
// the targets are the sentinels, each before the tokens that it stands for.
//
// Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer", 2020 (JMLR 21),
// section 3.1.4 and appendix; how many tokens and spans there are, and that a row begins with tokens that stay and ends
// with a span, is as in their code. Of a row of n >= 2 tokens
//
//   noise(n) = round(n * density), from 1 to n - 1           tokens are cut out, in
//   spans(n) = round(noise / mean_length), from 1 to min(noise, n - noise, sentinels)
//
// spans (halves are rounded to even), which part the noise, as what stays between them, uniformly at random. Immutable;
// any thread.
#pragma once

#include "core/columns/column_maker.h"
#include "core/rows/scalar_type.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock {

struct SpanCorruptionSpec {
  std::string field;  // of the tokens
  ScalarType type;    // of inputs and labels: a signed integer
  double density = 0.15;
  double mean_length = 3;
  std::vector<std::int64_t> sentinels;   // of the first span, the second, …
  std::optional<std::int64_t> end = {};  // comes last in inputs and in labels
  std::int64_t pad = 0;                  // of inputs
  std::uint64_t seed = 0;                // with the epoch and the observation decides what is cut out
};

/// Arrays: inputs [rows, n - noise + spans (+ 1 with an end)], labels [rows, noise + spans (+ 1)], which are -100 in
/// padding, attention_mask (int64, 1 or 0) like inputs; n is the length of the rows, or of the batch's longest. Throws
/// InvalidArgument: a density outside of (0, 1), a mean below 1, no sentinels. make() throws it for a field that is not
/// there or no single integer a record, or that cannot become the type; for packed rows; for fixed rows with more spans
/// than sentinels.
std::shared_ptr<const ColumnMaker> make_span_corruption(SpanCorruptionSpec spec);

}  // namespace penstock
