// Rows: a batch of rows of several stores, and a reader that drives them.
#pragma once

#include "core/engine/batch_memory.h"
#include "core/engine/row_reader.h"
#include "tests/native/core/engine/loader_fixture.h"

#include <array>
#include <cstring>
#include <exception>
#include <new>

namespace penstock::testing {

constexpr std::uint64_t kFileBytes = 20'000;

/// Row i is read in i % 4 + 1 rounds, of which some plan nothing.
inline bool plan_rounds(const File& file, Row& row, unsigned round, Reads& out) {
  const std::uint64_t rounds = row.index % 4 + 1;
  const std::uint64_t first = round * 12 / rounds;
  const std::uint64_t last = (round + 1) * 12 / rounds;
  if (row.index % 3 != 1 || round + 1 == rounds) {
    const std::uint64_t from = row.index % 3 == 1 ? 0 : first;
    ScriptedSource::read(file, row.index * 30 + from, last - from, row.records + from, out);
  }
  return round + 1 < rounds;
}

/// Row i has i % 7 records from byte 50 * i on, which is known after as many rounds with a read and one without.
inline bool plan_ragged(const File& file, Row& row, unsigned round, Reads& out) {
  if (row.measured) {
    if (row.length > 0) ScriptedSource::read(file, row.index * 50, row.length, row.records, out);
    return false;
  }
  if (round < row.index % 7) return ScriptedSource::read(file, row.index, 1, row.arena.allocate(1), out);
  row.length = row.index % 7;
  row.measured = true;
  return true;
}

/// Three stores with a file each, a source over them, a batch of its rows, and how each of them ended.
class Rows {
 public:
  /// Bit i of `late`: of store i.
  explicit Rows(unsigned late = 0) {
    for (unsigned i = 0; i < 3; ++i) {
      behaviours[i] = std::make_shared<Behaviour>();
      behaviours[i]->late = (late >> i) % 2 == 1;
      stores_[i] = std::make_unique<MemoryStore>(behaviours[i]);
      files[i] = stores_[i]->put("file", telling_bytes(kFileBytes, i));
    }
  }

  void begin(std::uint64_t length, std::uint64_t rows, ScriptedSource::Plan plan) {
    batch = batch_of(plain_format(std::make_shared<ScriptedSource>(length, std::move(plan))), rows, rows);
    if (length > 0) place();
    ends.assign(rows, 0);
    errors.assign(rows, nullptr);
    not_at_hand.assign(rows, false);
  }
  void begin_rounds(std::uint64_t rows) {
    begin(12, rows, [this](Row& row, unsigned round, Reads& out) { return plan_rounds(files[0], row, round, out); });
  }
  /// Round k reads from store (i + k) % 3, so that channels are opened while others have reads under way.
  void begin_stores(std::uint64_t rows) {
    begin(12, rows, [this](Row& row, unsigned round, Reads& out) {
      const File& file = files[(row.index + round) % 3];
      return ScriptedSource::read(file, row.index * 50 + round * 4, 4, row.records + round * 4, out) && round < 2;
    });
  }
  void begin_ragged(std::uint64_t rows) {
    begin(0, rows, [this](Row& row, unsigned round, Reads& out) { return plan_ragged(files[0], row, round, out); });
  }
  void begin_again() {
    BatchWork(*batch).prepare_rows();
    place();
  }
  void place() {
    batch->slab.ensure(needed_bytes(*batch));
    BatchWork(*batch).place();
  }

  std::unique_ptr<RowReader> reader(ChannelMode mode = ChannelMode::MayWait) {
    return std::make_unique<RowReader>(
        [this](const RowReader::Ended& ended) {
          EXPECT_EQ(ended.batch, batch);
          ++ends[ended.row];
          errors[ended.row] = ended.error;
          not_at_hand[ended.row] = ended.not_at_hand;
        },
        StoreChoice(), mode);
  }
  void start_all(RowReader& reader, RowReader::Part part = RowReader::Part::Whole) {
    for (std::uint64_t i = 0; i < batch->plan.valid; ++i) reader.start(batch, i, part);
  }
  /// All rows of the batch as a group.
  void start_group(RowReader& reader) {
    reader.start(RowGroup{.owner = batch,
                          .format = batch->format,
                          .rows = std::span(batch->rows.data(), batch->plan.valid),
                          .cancelled = &batch->cancelled,
                          .place =
                              [this] {
                                ++groups_placed;
                                if (has_no_memory) throw std::bad_alloc();
                                for (const Row& row : batch->rows) EXPECT_TRUE(row.error || row.measured);
                                BatchWork(*batch).measure();
                                place();
                              },
                          .done = [this] { ++groups_done; }});
  }
  void read_all(RowReader& reader, RowReader::Part part = RowReader::Part::Whole) {
    start_all(reader, part);
    finish(reader);
  }
  void read_group(RowReader& reader) {
    start_group(reader);
    finish(reader);
    EXPECT_EQ(groups_done, 1);
  }
  static void finish(RowReader& reader) {
    while (!reader.is_idle()) reader.pump(std::chrono::milliseconds(50));
  }
  /// Each row did, so often.
  void expect_ended(int times = 1) const { EXPECT_EQ(ends, std::vector<int>(ends.size(), times)); }

  [[nodiscard]] bool has_bytes(std::uint64_t row, unsigned file, std::uint64_t offset, std::uint64_t size,
                               std::uint64_t at = 0) const {
    const std::vector<std::byte> bytes = telling_bytes(kFileBytes, file);
    return std::memcmp(batch->rows[row].records + at, bytes.data() + offset, size) == 0;
  }
  [[nodiscard]] bool has_bytes_of_stores(std::uint64_t i) const {
    bool has = true;
    for (unsigned k = 0; k < 3; ++k) {
      has = has && has_bytes(i, static_cast<unsigned>((i + k) % 3), i * 50 + k * 4, 4, k * 4);
    }
    return has;
  }
  [[nodiscard]] bool is_whole(std::uint64_t row) const { return !errors[row] && batch->rows[row].spans.size() == 1; }

  std::array<std::shared_ptr<Behaviour>, 3> behaviours;
  std::array<File, 3> files;
  std::shared_ptr<Batch> batch;
  std::vector<int> ends;
  std::vector<std::exception_ptr> errors;
  std::vector<bool> not_at_hand;
  int groups_done = 0;
  int groups_placed = 0;
  bool has_no_memory = false;

 private:
  std::array<std::unique_ptr<MemoryStore>, 3> stores_;
};

}  // namespace penstock::testing
