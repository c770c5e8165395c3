// Documents whose fields are arrays beside each other in a file: found, cast, put in order; and refused in words.
// (Files that changed: tests/python/data/test_in_place.py.)
#include "layout/foreign/field_arrays.h"

#include "core/base/error.h"
#include "layout/reading/reads.h"
#include "tests/native/layout/drive.h"

#include <gtest/gtest.h>

namespace penstock::testing {
namespace {

using layout::FieldArraysFile;

// Genes and values of three documents of 3, 0 and 4 records, in chunks of 3 that lie in the file one behind the other,
// but for the last one of genes, which comes first.
class FieldArraysTest : public ::testing::Test {
 protected:
  template <typename Gene, typename Value>
  FieldArraysFile put(const std::vector<Gene>& genes, const std::vector<Value>& values) {
    std::vector<std::byte> bytes;
    std::vector<std::uint64_t> gene_chunks(3);
    std::vector<std::uint64_t> value_chunks(3);
    const auto append = [&]<typename T>(const std::vector<T>& all, std::size_t chunk) {
      const std::vector<std::byte> raw = bytes_of(all);
      const auto part = std::span(raw).subspan(3 * chunk * sizeof(T));
      const auto rest = part.first(std::min(part.size(), 3 * sizeof(T)));
      bytes.insert(bytes.end(), rest.begin(), rest.end());
      return bytes.size() - rest.size();
    };
    gene_chunks[2] = append(genes, 2);
    gene_chunks[0] = append(genes, 0);
    gene_chunks[1] = append(genes, 1);
    for (std::size_t chunk = 0; chunk < 3; ++chunk) value_chunks[chunk] = append(values, chunk);
    write_file(folder_.path("cells"), bytes);
    FieldArraysFile file;
    file.location = local(folder_.path("cells"));
    file.format = "h5ad";
    file.arrays.starts = {0, 3, 3, 7};
    file.arrays.genes = {"gene", type_of<Gene>(), {'u', 4}, 3, gene_chunks};
    file.arrays.values = {"count", type_of<Value>(), type_of<Value>(), 3, value_chunks};
    return file;
  }
  FieldArraysFile good() { return put<std::int32_t, float>({0, 1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6}); }

  template <typename T>
  static ScalarType type_of() {
    return {std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u', sizeof(T)};
  }

  template <typename Value>
  static void expect_document(const layout::DatasetPtr& dataset, std::uint64_t index,
                              const std::vector<std::uint32_t>& genes, const std::vector<Value>& values) {
    const Driven row = driven(*layout::make_documents(dataset), index);
    ASSERT_EQ(row.row.length, genes.size());
    for (std::size_t i = 0; i < genes.size(); ++i) {
      EXPECT_EQ(layout::load_at<std::uint32_t>(row.row.records, i), genes[i]) << index << " " << i;
      EXPECT_EQ(layout::load_at<Value>(row.row.records + 4 * genes.size(), i), values[i]) << index << " " << i;
    }
    ASSERT_EQ(row.row.spans.size(), 1U);
    EXPECT_EQ(row.row.spans[0].entry, index);
  }

  static void expect_refused(FieldArraysFile file, ErrorKind kind, const std::string& words) {
    expect_error([&] { layout::open_field_arrays(std::move(file)); }, kind, words);
  }

  TemporaryFolder folder_;
};

TEST_F(FieldArraysTest, DocumentsAreReadFromChunksAndPutInTheOrderOfGenes) {
  const auto dataset =
      layout::open_field_arrays(put<std::int32_t, float>({5, 7, 900'000, 8, 2, 4, 3}, {1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(dataset->schema.json(), R"([["gene","<u4"],["count","<f4"]])");
  EXPECT_TRUE(layout::make_documents(dataset)->info().fields_apart);
  expect_document<float>(dataset, 0, {5, 7, 900'000}, {1, 2, 3});
  expect_document<float>(dataset, 1, {}, {});
  expect_document<float>(dataset, 2, {2, 3, 4, 8}, {5, 7, 6, 4});
}

TEST_F(FieldArraysTest, RecordsOfOneGeneStayInTheirOrderAndChunksThatFollowEachOtherAreOneRead) {
  const auto equal =
      layout::open_field_arrays(put<std::int32_t, std::int16_t>({0, 1, 2, 9, 4, 9, 4}, {0, 0, 0, 1, 2, 3, 4}));
  expect_document<std::int16_t>(equal, 2, {4, 4, 9, 9}, {2, 4, 1, 3});
  const auto source = layout::make_documents(layout::open_field_arrays(good()));
  EXPECT_EQ(driven(*source, 2).reads.size(), 3U);  // genes in two places, values in one
  EXPECT_TRUE(driven(*source, 2, Parts::Spans).reads.empty());
}

TEST_F(FieldArraysTest, WideIntegersAreCastAndThoseThatDoNotFitAreRefused) {
  const std::int64_t exact = std::int64_t{1} << 53;
  const auto opened = [&](const std::vector<std::int64_t>& genes, const std::vector<std::int64_t>& values) {
    FieldArraysFile file = put(genes, values);
    file.arrays.values.given = {'f', 8};
    return layout::open_field_arrays(std::move(file));
  };
  const auto dataset = opened({0, 1, 4'294'967'295, 0, 1, 2, 3}, {1, -exact, exact, 0, 0, 0, exact + 1});
  expect_document<double>(dataset, 0, {0, 1, 4'294'967'295}, {1, -9007199254740992.0, 9007199254740992.0});
  EXPECT_THROW(driven(*layout::make_documents(dataset), 2), Error);
  for (const std::int64_t gene : {std::int64_t{-1}, std::int64_t{1} << 32}) {
    const auto other = opened({0, gene, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0, 0});
    EXPECT_THROW(driven(*layout::make_documents(other), 0), Error) << gene;
  }
}

TEST_F(FieldArraysTest, ArraysThatCannotLieSoAreRefused) {
  const struct {
    void (*change)(layout::FieldArrays&);
    const char* words;
    ErrorKind kind = ErrorKind::Corruption;
  } kRefusals[] = {
      {[](auto& all) { all.starts.assign(1, 0); }, "no documents", ErrorKind::InvalidArgument},
      {[](auto& all) { all.starts[0] = 1; }, "document 0 begins at value 1"},
      {[](auto& all) { all.starts[2] = 2; }, "document 1 begins at value 3 and ends at 2"},
      {[](auto& all) { all.starts.back() = 10; }, "gene has 3 chunks"},
      {[](auto& all) { all.starts.back() = UINT64_MAX; }, "gene has 3 chunks"},
      {[](auto& all) { all.values.chunks[2] += 1; }, "4 bytes of count at byte 53 of 56"},
      {[](auto& all) { all.genes.chunks[0] = UINT64_MAX - 2; }, "bytes of gene"},
      {[](auto& all) { all.genes.chunk_values = 0; }, "chunks of 0 values"},
      {[](auto& all) {
         all.genes.stored = {'f', 4};
       },
       "no cell has it", ErrorKind::InvalidArgument},
      {[](auto& all) {
         all.genes.given = {'u', 2};
       },
       "expected uint32", ErrorKind::InvalidArgument},
      {[](auto& all) {
         all.values.stored = {'c', 8};
       },
       "no cell has it", ErrorKind::InvalidArgument},
  };
  for (const auto& [change, words, kind] : kRefusals) {
    FieldArraysFile file = good();
    change(file.arrays);
    expect_refused(std::move(file), kind, words);
  }
  layout::open_field_arrays(good());
}

TEST_F(FieldArraysTest, ColumnsThatDoNotFitTheirTypesAreRefused) {
  const auto with = [&](layout::ColumnArray array, const char* types, layout::CategoriesPtr categories) {
    FieldArraysFile file = good();
    auto columns = std::make_shared<layout::ShardColumns>();
    columns->arrays.push_back(std::move(array));
    columns->categories.push_back(std::move(categories));
    file.columns = layout::parse_column_types(types);
    file.shard_columns = std::move(columns);
    return file;
  };
  const auto names = std::make_shared<const layout::Categories>(layout::Categories{"a", "b"});
  layout::open_field_arrays(with({0, 4}, R"([["x","<i4"]])", nullptr));
  expect_refused(with({0, 8}, R"([["x","<i4"]])", nullptr), ErrorKind::InvalidArgument, "values of 8 bytes");
  expect_refused(with({0, 3}, R"([["x","category"]])", names), ErrorKind::InvalidArgument, "values of 3 bytes");
  expect_refused(with({0, 4}, R"([["x","category"]])", nullptr), ErrorKind::InvalidArgument, "no categories");
  expect_refused(with({48, 4}, R"([["x","<i4"]])", nullptr), ErrorKind::Corruption, "12 bytes of column x at byte 48");
  const auto kept = std::make_shared<const std::vector<std::byte>>(11);
  expect_refused(with({0, 4, kept}, R"([["x","<i4"]])", nullptr), ErrorKind::Corruption, "of 11");
}

}  // namespace
}  // namespace penstock::testing
