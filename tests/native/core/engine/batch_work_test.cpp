// Where rows and columns of a batch lie, and what becomes of rows that were read elsewhere.
#include "core/batch/batch.h"

#include "core/engine/batch_memory.h"
#include "tests/native/core/engine/loader_fixture.h"

#include <limits>

namespace penstock::testing {
namespace {

/// Memory that is exactly as large as needed, so that a sanitizer sees what is written beyond it.
void give_memory(Batch& batch) {
  const std::uint64_t bytes = needed_bytes(batch);
  auto memory = std::shared_ptr<std::byte[]>(new (std::align_val_t(64)) std::byte[bytes + 1],
                                             [](std::byte* at) { operator delete[](at, std::align_val_t(64)); });
  batch.slab.lend(memory.get(), bytes, memory);
  BatchWork(batch).place();
}

BatchFormat shaped(std::uint64_t length, std::uint64_t lead, std::uint64_t tail) {
  const RowShape shape{.ragged = length == 0, .length = length, .lead = lead, .tail = tail};
  return plain_format(std::make_shared<ScriptedSource>(shape, [](Row&, unsigned, Reads&) { return false; }));
}

/// The row with what lies before and after it, as its source may write it.
std::span<std::byte> stored(Batch& batch, std::uint64_t i) {
  const RowShape& shape = batch.format->shape;
  return {batch.row_records(i) - shape.lead, shape.lead + batch.row_length(i) + shape.tail};
}

TEST(Batch, RowsWithLeadAndTailLieInTheSlabBesideOneAnother) {
  for (const std::uint64_t length : {1, 5, 63, 64, 4'095, 4'096, 4'097, 8'200}) {
    for (const std::uint64_t lead : {0, 1, 8, 64}) {
      for (const std::uint64_t tail : {0, 1, 9}) {
        const auto batch = batch_of(shaped(length, lead, tail), 5, 5);
        give_memory(*batch);
        const std::byte* end = batch->slab.data();
        for (std::uint64_t i = 0; i < 5; ++i) {
          const std::span<std::byte> row = stored(*batch, i);
          EXPECT_GE(row.data(), end) << "row " << i << " of " << length;
          end = row.data() + row.size();
          EXPECT_EQ(batch->rows[i].records, batch->row_records(i));
          std::memset(row.data(), 1, row.size());  // a sanitizer sees what is beyond
        }
        EXPECT_LE(end, batch->slab.data() + needed_bytes(*batch));
        EXPECT_LT(needed_bytes(*batch), 5 * (length + lead + tail + 64) + 192) << "no more than padding of cache lines";
      }
    }
  }
}

// A copy to an address a few bytes beyond its source's within the page is slow; see row_stride in batch.cpp.
TEST(Batch, RowsOfAPageAndARecordBeginInCacheLinesOfTheirOwn) {
  const BatchFormat format = shaped(4'097, 0, 0);
  EXPECT_EQ(format.row_bytes, 4'096U + 64);
  EXPECT_EQ(shaped(4'096, 0, 0).row_bytes, 4'096U);
  EXPECT_EQ(shaped(100, 1, 2).row_bytes, 103U);
}

TEST(Batch, SizesThatNoMemoryHasAreRefused) {
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max() / 2;
  const auto fixed = batch_of(format_of({}, 5), 2, 2);
  fixed->plan.rows = huge;
  EXPECT_THROW(static_cast<void>(needed_bytes(*fixed)), Error);
  const auto ragged = batch_of(format_of({}, 0), 3, 3);
  for (std::size_t i = 0; i < 3; ++i) ragged->rows[i].length = huge;
  EXPECT_THROW(BatchWork(*ragged).measure(), Error);
  ragged->plan.valid = 1;
  EXPECT_THROW(BatchWork(*ragged).measure(), Error) << "as records of four bytes";
}

TEST(Batch, AnAdoptedRowIsCopiedWithItsLeadAndTail) {
  for (const std::uint64_t length : {5, 4'097}) {
    const auto batch = batch_of(shaped(length, 2, 3), 2, 2);
    give_memory(*batch);
    std::vector<Row> read(2);
    std::vector<std::byte> memory(2 * (length + 5));
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 3 + i / 256);
    for (std::size_t i = 0; i < 2; ++i) {
      read[i].index = i;
      read[i].length = length;
      read[i].records = memory.data() + i * (length + 5) + 2;
      read[i].state = read[i].arena.make<std::uint64_t>(40 + i);
      batch->fetched.push_back(&read[i]);
    }
    for (const std::uint64_t i : {1, 0}) BatchWork(*batch).adopt_row(i);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(batch->rows[i].records, batch->row_records(i)) << "the row lies in the batch now";
      EXPECT_EQ(std::memcmp(stored(*batch, i).data(), memory.data() + i * (length + 5), length + 5), 0);
      EXPECT_EQ(*static_cast<std::uint64_t*>(batch->rows[i].state), 40 + i) << "with what its source knows";
      EXPECT_GT(batch->rows[i].arena.capacity_bytes(), 0U);
    }
  }
}

}  // namespace
}  // namespace penstock::testing
