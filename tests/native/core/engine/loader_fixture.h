// Batches and loaders over memory, and what they delivered in a form that can be compared.
#pragma once

#include "core/base/error.h"
#include "core/engine/batch_work.h"
#include "core/engine/loader.h"
#include "tests/native/core/engine/memory_source.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::testing {

/// Everything that a consumer can see of a batch.
struct Seen {
  std::uint64_t position = 0;
  std::uint64_t end = 0;
  std::vector<std::int64_t> indices;
  std::vector<std::uint32_t> records;
  std::vector<std::vector<std::int64_t>> columns;
  std::vector<std::uint64_t> starts;
  std::vector<std::uint64_t> entries;  // row, entry, and the number that its bytes are
  bool operator==(const Seen&) const = default;
};

/// In the words of a failed test.
inline void PrintTo(const Seen& seen, std::ostream* out) {
  *out << "[" << seen.position << ", " << seen.end << ")";
}

inline Seen look(Batch& batch) {
  Seen seen;
  seen.position = batch.plan.position;
  seen.end = batch.plan.end;
  if (batch.format->shape.ragged) seen.starts = batch.starts;
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    seen.indices.push_back(i < batch.plan.valid ? static_cast<std::int64_t>(batch.picks[i].index) : -1);
    for (const Span& span : batch.rows[i].spans) {
      std::uint64_t value = 0;
      std::memcpy(&value, span.raw, 8);
      seen.entries.insert(seen.entries.end(), {i, span.entry, value});
    }
  }
  seen.records.resize(batch.record_count());
  std::copy_n(batch.slab.data() + batch.records_at, seen.records.size() * 4,
              reinterpret_cast<std::byte*>(seen.records.data()));
  for (std::size_t c = 0; c < batch.format->columns.size(); ++c) {
    const PlacedArray& array = batch.arrays[c];
    std::vector<std::int64_t> values(
        std::accumulate(array.shape.dims.begin(), array.shape.dims.end(), std::uint64_t{1}, std::multiplies<>()));
    std::copy_n(batch.slab.data() + array.at, values.size() * 8, reinterpret_cast<std::byte*>(values.data()));
    seen.columns.push_back(std::move(values));
  }
  return seen;
}

/// What memory holds of the batch's observations: records, spans, and the columns of format_of().
inline Seen whole_of(const Batch& batch) {
  const bool ragged = batch.format->shape.ragged;
  Seen expected;
  expected.position = batch.plan.position;
  expected.end = batch.plan.end;
  expected.columns.resize(ragged ? 1 : 2);
  if (ragged) expected.starts.push_back(0);
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    const bool valid = i < batch.plan.valid;
    std::vector<std::uint32_t> row(ragged ? 0 : batch.format->shape.length);
    if (valid) {
      const std::uint64_t index = batch.picks[i].index;
      row = static_cast<const MemorySource&>(*batch.row_format(i).source).records_of(index);
      expected.entries.insert(expected.entries.end(), {i, index, index});
    }
    expected.indices.push_back(valid ? static_cast<std::int64_t>(batch.picks[i].index) : -1);
    expected.records.insert(expected.records.end(), row.begin(), row.end());
    if (ragged) expected.starts.push_back(expected.records.size());
    auto& columns = expected.columns;
    columns[0].insert(columns[0].end(), row.begin(), row.end() - (ragged ? 0 : 1));
    for (std::size_t k = 1; !ragged && k < row.size(); ++k) columns[1].push_back(valid ? std::int64_t{row[k]} : -100);
  }
  return expected;
}

/// The batch has what memory holds of its observations.
inline void expect_whole(Batch& batch) {
  EXPECT_EQ(look(batch), whole_of(batch));
}

/// Nothing is skipped and there is one rank: the batch has the observations that follow its position.
inline void expect_right(Batch& batch, const Order& order) {
  std::vector<Pick> picks(batch.plan.valid);
  order.pick(batch.plan.position, 1, picks);
  EXPECT_EQ(batch.picks, picks) << "at " << batch.plan.position;
  expect_whole(batch);
}

struct Case {
  std::uint64_t count = 23;  // observations
  std::uint64_t window = 5;  // 0: documents
  std::uint64_t batch = 4;   // global batch size
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  std::optional<std::uint64_t> epochs = 2;
  bool per_epoch = false;
  Tail tail = Tail::Pad;
  Ranges skip = {};
  std::uint64_t fetch = 1;  // of the order
  unsigned threads = 2;
  unsigned prefetch = 3;
  std::uint64_t max_bytes = 1 << 20;
  bool lends = false;
  bool late = false;  // as in Behaviour
  Uneven uneven = Uneven::Refuse;
  std::shared_ptr<Behaviour> behaviour = std::make_shared<Behaviour>();
};

/// A member of Case, and the values that it takes in turn.
template <typename T>
struct Each {
  T Case::*member;
  std::vector<T> values;
};

template <typename T>
Each<T> each(T Case::*member, std::vector<std::type_identity_t<T>> values) {
  return {member, std::move(values)};
}

/// All combinations of these values.
template <typename... T>
std::vector<Case> cases(const Each<T>&... dimensions) {
  std::vector<Case> all(1);
  const auto vary = [&all](const auto& dimension) {
    std::vector<Case> varied;
    for (const Case& setup : all) {
      for (const auto& value : dimension.values) {
        varied.push_back(setup);
        varied.back().*dimension.member = value;
      }
    }
    all = std::move(varied);
  };
  (vary(dimensions), ...);
  for (Case& setup : all) setup.behaviour = std::make_shared<Behaviour>();
  return all;
}

inline std::string describe(const Case& setup) {
  return fmt::format("window {} batch {} rank {} of {} fetch {} threads {} prefetch {} max_bytes {}{}{}{}{}",
                     setup.window, setup.batch, setup.rank, setup.world_size, setup.fetch, setup.threads,
                     setup.prefetch, setup.max_bytes, setup.per_epoch ? " per epoch" : "",
                     setup.tail == Tail::Drop    ? " drops"
                     : setup.tail == Tail::Short ? " is short"
                                                 : "",
                     setup.lends ? " lent" : "", setup.late || setup.behaviour->late ? " late" : "");
}

/// Rows of `window` records that count from `first` on.
inline BatchFormat format_of(const Case& setup, std::uint64_t window, std::uint32_t first = 0) {
  if (setup.late) setup.behaviour->late = true;
  auto source = std::make_shared<MemorySource>(setup.count, window, setup.behaviour, first);
  if (window == 0) return {source, {FieldSpec{"token", "token", {'i', 8}}}};
  return {source, {FieldSpec{"inputs", "token", {'i', 8}, 0, 1}, FieldSpec{"labels", "token", {'i', 8}, 1, 1, true}}};
}

/// A batch of `rows` rows, of which the first `valid` are observations 0, 1, … of the only source.
inline std::shared_ptr<Batch> batch_of(BatchFormat format, std::uint64_t rows, std::uint64_t valid) {
  auto formats = std::make_shared<BatchFormats>();
  formats->push_back(std::move(format));
  auto batch = std::make_shared<Batch>();
  batch->formats = formats;
  batch->format = &formats->front();
  batch->plan.rows = rows;
  batch->plan.valid = valid;
  for (std::uint64_t i = 0; i < valid; ++i) batch->picks.push_back({i, 0, 0, 0});
  BatchWork(*batch).prepare_rows();
  return batch;
}

inline std::shared_ptr<const Job> job_of(const Case& setup, std::shared_ptr<const Order> order,
                                         const BatchFormats& formats) {
  CursorOptions options;
  options.epochs = setup.epochs;
  options.per_epoch = setup.per_epoch;
  options.tail = setup.tail;
  options.skip = setup.skip;
  options.schedule = {{0, setup.batch}};
  options.uneven = setup.uneven;
  std::vector<SourceIdentity> sources;
  for (const BatchFormat& format : formats) sources.push_back(format.source->info().identity);
  return std::make_shared<Job>(std::move(order), sources, std::move(options));
}

inline void lend_memory(Slab& slab, std::uint64_t bytes) {
  auto memory = std::shared_ptr<std::byte[]>(new std::byte[bytes + 1]);
  std::memset(memory.get(), 0x5a, bytes);  // what was there before must never be seen
  slab.lend(memory.get(), bytes, memory);
}

inline LoaderOptions options_of(const Case& setup, std::shared_ptr<const Order> order, BatchFormats formats) {
  LoaderOptions options;
  options.job = job_of(setup, std::move(order), formats);
  options.share = {setup.rank, setup.world_size};
  options.formats = std::make_shared<const BatchFormats>(join(std::move(formats)));
  options.threads = setup.threads;
  options.prefetch = setup.prefetch;
  options.max_bytes = setup.max_bytes;
  if (setup.lends) options.lend = lend_memory;
  return options;
}

inline LoaderOptions options_of(const Case& setup) {
  return options_of(setup, std::make_shared<IdentityOrder>(setup.count, setup.fetch), {format_of(setup, setup.window)});
}

/// True if `check` is true in a forked child, which ends then.
template <typename Check>
bool is_true_in_child(const Check& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The next batch, or null at the end of the `for`.
inline std::shared_ptr<Batch> next(Loader& loader) {
  while (true) {
    if (auto batch = loader.poll()) return batch;
    if (loader.ended()) return nullptr;
    loader.wait(std::chrono::milliseconds(50));
  }
}

/// All that is left of this `for`.
inline std::vector<Seen> rest(Loader& loader) {
  std::vector<Seen> all;
  while (auto batch = next(loader)) all.push_back(look(*batch));
  return all;
}

/// All that is left of the run, through its epochs' ends.
inline std::vector<Seen> rest_of_run(Loader& loader) {
  std::vector<Seen> all;
  while (loader.position() < loader.job().cursor().run_end()) {
    loader.begin();
    for (Seen& seen : rest(loader)) all.push_back(std::move(seen));
  }
  return all;
}

/// The run as one thread reads it, one batch ahead, each row by itself.
inline std::vector<Seen> plain_run(Case setup) {
  setup.fetch = 1;
  setup.threads = setup.prefetch = 1;
  setup.max_bytes = 1 << 20;
  setup.lends = setup.late = false;
  setup.behaviour = std::make_shared<Behaviour>();
  Loader loader(options_of(setup));
  return rest_of_run(loader);
}

/// A run that is left after any number of batches and taken up by another loader gives what it gave without.
inline void expect_restores_at_every_step(const LoaderOptions& options) {
  Loader whole(options);
  const std::vector<Seen> all = rest_of_run(whole);
  whole.seek(0);
  for (std::size_t step = 0; step <= all.size(); ++step) {
    Loader again(options);
    if (step % 2 == 1) next(again);  // before and after the first batch
    again.load(whole.state(), OnMismatch::Refuse);
    EXPECT_EQ(rest_of_run(again), std::vector<Seen>(all.begin() + static_cast<std::ptrdiff_t>(step), all.end()))
        << "after " << step;
    if (step == all.size()) break;
    if (whole.ended()) whole.begin();
    while (!next(whole)) whole.begin();
  }
}

}  // namespace penstock::testing
