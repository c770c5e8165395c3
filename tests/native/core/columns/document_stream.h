// Random documents, empty ones too, whose records say whether they count: for what is computed of documents.
#pragma once

#include "core/engine/read_rows.h"
#include "tests/native/core/engine/field_source.h"
#include "tests/native/core/engine/loader_fixture.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace penstock::testing {

struct DocumentStream {
  static constexpr std::uint32_t kEnd = 3;    // the token that ends a document …
  static constexpr std::uint32_t kBegin = 4;  // … and the one that begins it

  std::vector<std::uint32_t> tokens;
  std::vector<std::uint8_t> counts;
  std::vector<std::uint64_t> number;  // of each record's document: its entry …
  std::vector<std::uint64_t> offset;  // … and the record's place in it
  std::vector<std::uint64_t> begins;  // of all documents but the first

  explicit DocumentStream(std::uint64_t records, unsigned seed = 1, std::uint64_t longest = 10) {
    std::mt19937 random(seed);
    for (std::uint64_t document = 0; tokens.size() < records; ++document) {
      if (document > 0) begins.push_back(tokens.size());
      // Empty, or with both tokens that bound it.
      const std::uint64_t length = random() % 4 == 0 ? 0 : 2 + random() % (longest - 1);
      for (std::uint64_t i = 0; i < length; ++i) {
        tokens.push_back(i == 0 ? kBegin : i + 1 == length ? kEnd : 10 + static_cast<std::uint32_t>(random() % 90));
        counts.push_back(random() % 3 == 0 ? 0 : 1 + static_cast<std::uint8_t>(random() % 200));
        number.push_back(document);
        offset.push_back(i);
      }
    }
  }

  /// Records {token, loss}, `loss` of type T.
  template <typename T = std::uint8_t>
  [[nodiscard]] FieldRows rows(const std::string& loss = "|u1") const {
    FieldRows made{.fields = R"([["token","<u4"],["loss",")" + loss + R"("]])", .documents = begins};
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      put_values(made.bytes, tokens[i], static_cast<T>(T{counts[i]} << 8 * (sizeof(T) - 1)));  // the highest byte
    }
    return made;
  }

  /// Whether record `at` begins a document.
  [[nodiscard]] bool begins_at(std::uint64_t at) const { return at == 0 || number[at] != number[at - 1]; }
};

/// The column's array, or (part 1, 2, …) one of those beside it.
template <typename T>
std::vector<T> values_of(const Batch& batch, std::size_t column, std::size_t part = 0) {
  const PlacedArray& array = batch.arrays.at(column);
  const Dims& dims = part == 0 ? array.shape.dims : array.shape.further.at(part - 1).dims;
  const std::uint64_t at = array.at + (part == 0 ? 0 : array.shape.further.at(part - 1).at);
  std::vector<T> values(std::accumulate(dims.begin(), dims.end(), std::uint64_t{1}, std::multiplies<>()));
  if (!values.empty()) std::memcpy(values.data(), batch.slab.data() + at, values.size() * sizeof(T));
  return values;
}

/// The first one beside it.
template <typename T>
std::vector<T> further_values_of(const Batch& batch, std::size_t column) {
  return values_of<T>(batch, column, 1);
}

/// A loader of one format over the rows in their order.
inline LoaderOptions options_of(const Case& setup, FieldRows rows, std::vector<ColumnSpec> specs,
                                Parts wanted = Parts::All) {
  BatchFormats formats;
  formats.emplace_back(std::make_shared<FieldSource>(std::move(rows)), std::move(specs), wanted);
  const std::uint64_t size = formats[0].source->info().size;
  return options_of(setup, std::make_shared<IdentityOrder>(size), std::move(formats));
}

/// Rows number `indices`, in one batch.
inline std::shared_ptr<Batch> batch_of(FieldRows rows, std::vector<ColumnSpec> specs,
                                       const std::vector<std::uint64_t>& indices, Parts wanted = Parts::All) {
  auto formats = std::make_shared<BatchFormats>();
  formats->emplace_back(std::make_shared<FieldSource>(std::move(rows)), std::move(specs), wanted);
  return read_rows(formats, indices);
}

}  // namespace penstock::testing
