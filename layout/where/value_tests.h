// Tests of stored values: of which of many in a row a comparison is true, as bits.
//
// Tests are pure functions; any thread. NaN is null: no comparison with it is true.
#pragma once

#include "core/rows/scalar_type.h"
#include "layout/where/number.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace penstock::layout {

/// Sets each bit of `bits` where the test is true of the value that has its number, of `count` stored at `values`; bits
/// beyond are 0.
using ValueTest = std::function<void(const std::byte* values, std::uint64_t count, std::span<std::uint64_t> bits)>;
/// The same for the values of two columns.
using PairTest = std::function<void(const std::byte* values, const std::byte* others, std::uint64_t count,
                                    std::span<std::uint64_t> bits)>;

/// `value <what> number`; of integers and floats.
ValueTest compare_with(ScalarType type, Comparison what, const Number& number);
/// The value is one of the numbers; `is_negated`: it is none of them, and not null.
ValueTest is_one_of(ScalarType type, const std::vector<Number>& numbers, bool is_negated);
/// The value is null; `is_negated`: it is not.
ValueTest is_null(ScalarType type, bool is_negated);
/// The boolean is true; `is_negated`: it is false.
ValueTest is_true(bool is_negated);
/// `value <what> other`, of numbers of any two types, or of two booleans.
PairTest compare_pairs(ScalarType type, Comparison what, ScalarType other);
/// The test of codes of categories, as stored, in `bytes` each: bit i is truths[code + 1]. It throws std::out_of_range
/// for a code that has none.
void test_codes(const std::byte* codes, std::uint32_t bytes, std::uint64_t count, std::span<const std::uint8_t> truths,
                std::span<std::uint64_t> bits);

}  // namespace penstock::layout
