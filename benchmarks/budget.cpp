// The hot paths for budget.py, which counts their instructions under valgrind's callgrind.
//   penstock_budget make FOLDER       writes the little datasets that are read
//   penstock_budget measure FOLDER    says its compiler, walks each path; prints a line of JSON each: name and items
// Callgrind collects inside collected_* alone and writes what it counted when a workload_* returns; both therefore keep
// plain names and are never inlined. Nothing here depends on the machine: forms of the permutation are asked for by
// name, reads are done outside what is counted, seeds are fixed.
#include "core/io/local/local_store.h"
#include "core/rows/cast.h"
#include "core/rows/schema.h"
#include "layout/dataset.h"
#include "shuffle/draw_tree.h"
#include "shuffle/permutation.h"
#include "writer/shards/dataset_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#define PENSTOCK_MEASURED extern "C" __attribute__((noinline))

namespace {

using penstock::Leaf;
using penstock::Reads;
using penstock::Row;
using penstock::ScalarType;
using penstock::Schema;
using penstock::Source;
using penstock::shuffle::DrawTree;
using penstock::shuffle::Form;
using penstock::shuffle::Key;
using penstock::shuffle::Permutation;
using penstock::shuffle::WeightTable;

constexpr std::uint64_t kWindow = 4096;
constexpr std::uint64_t kWindows = 200;  // of each path that plans windows
constexpr std::uint64_t kDocumentRecords = 800;
constexpr std::uint64_t kEntryBytes = 160;
constexpr std::uint64_t kFiles = 100;  // of the token stream: the search for a window's shard is in it
constexpr std::uint64_t kFileRecords = 2 * kWindow + 100;

// --- what is read

std::vector<std::byte> random_bytes(std::mt19937_64& random, std::uint64_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xFF);
  return bytes;
}

std::string token_file(const std::string& folder, std::uint64_t number) {
  return fmt::format("{}/{:03}.bin", folder, number);
}

void make_documents(const std::string& path, const char* layout, std::uint64_t records) {
  penstock::writer::WriterOptions options;
  options.format.mode = "stream";
  options.format.layout = layout;
  options.format.schema = Schema::parse(R"([["token", "<u4"]])");
  options.format.codec_json = R"({"name":"raw"})";
  penstock::writer::DatasetWriter writer(path, options);
  std::mt19937_64 random(2);
  while (writer.records() < records) {
    const std::vector<std::byte> document = random_bytes(random, 4 * (1 + random() % (2 * kDocumentRecords)));
    const std::vector<std::byte> entry = random_bytes(random, kEntryBytes);
    writer.append(document, entry);
  }
  writer.commit();
}

void make(const std::string& folder) {
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < kFiles; ++i) {
    const std::vector<std::byte> bytes = random_bytes(random, 4 * kFileRecords);
    std::ofstream file(token_file(folder, i), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error("cannot write into " + folder);
  }
  const auto local = std::make_shared<penstock::LocalStore>();
  for (const char* layout : {"compact", "ids"}) {
    make_documents(fmt::format("{}/{}", folder, layout), layout, kWindow * kWindows);
  }
}

// --- rows, as the engine drives them, one after the other

class Rows {
 public:
  Rows(const Source& source, std::uint64_t count) : source_(source), rows_(count) {
    const std::uint64_t record_bytes = source.info().stored_record_bytes;
    const auto shape = source.info().shape;
    const std::uint64_t row_bytes = (shape.lead + shape.length + shape.tail) * record_bytes;
    memory_.resize(count * row_bytes);
    std::mt19937_64 random(3);
    for (std::uint64_t i = 0; i < count; ++i) {
      rows_[i].index = random() % source.info().size;
      rows_[i].length = shape.length;
      rows_[i].records = memory_.data() + i * row_bytes + shape.lead * record_bytes;
    }
  }

  /// Once before anything is counted, so that arenas and span lists have their memory, as recycled rows have.
  template <typename Plan, typename Spans>
  void drive_all(const Plan& plan, const Spans& spans) {
    for (Row& row : rows_) {
      row.arena.reset();
      row.spans.clear();
      bool more = true;
      for (unsigned round = 0; more; ++round) {
        Reads reads;
        more = plan(source_, row, round, reads);
        for (const penstock::Read& read : reads) perform(read);
      }
      spans(source_, row);
    }
  }

 private:
  void perform(const penstock::Read& read) {
    auto [at, opened] = files_.try_emplace(read.file, -1);
    if (opened) at->second = ::open(read.file->path().c_str(), O_RDONLY | O_CLOEXEC);
    const auto size = static_cast<ssize_t>(read.size);
    if (::pread(at->second, read.destination, read.size, static_cast<off_t>(read.offset)) != size) {
      throw std::runtime_error("cannot read " + read.file->path());
    }
  }

  const Source& source_;
  std::deque<Row> rows_;
  std::vector<std::byte> memory_;
  std::map<const penstock::File*, int> files_;
};

bool plan(const Source& source, Row& row, unsigned round, Reads& reads) {
  return source.plan(row, round, penstock::Parts::All, reads);
}
void find_spans(const Source& source, Row& row) {
  source.spans(row, row.spans);
}

void say(const char* name, std::uint64_t items) {
  fmt::print("{{\"name\": \"{}\", \"items\": {}}}\n", name, items);
}

}  // namespace

// --- what is counted

PENSTOCK_MEASURED void collected_permutation(const Permutation& permutation, std::span<const std::uint64_t> in,
                                             std::span<std::uint64_t> out, Form form) {
  permutation(in, out, form);
}

PENSTOCK_MEASURED void collected_draws(const DrawTree& tree, std::span<penstock::Pick> picks) {
  tree.draw(picks);
}

PENSTOCK_MEASURED bool collected_plan(const Source& source, Row& row, unsigned round, Reads& reads) {
  return source.plan(row, round, penstock::Parts::All, reads);
}

PENSTOCK_MEASURED void collected_spans(const Source& source, Row& row) {
  source.spans(row, row.spans);
}

PENSTOCK_MEASURED void collected_cast(const Leaf& leaf, const std::byte* records, std::uint64_t stored_record_bytes,
                                      std::uint64_t count, ScalarType type, std::byte* out) {
  penstock::cast_leaf(leaf, records, stored_record_bytes, count, type, out);
}

// --- the paths: each is called once, and callgrind writes its counts when it returns

PENSTOCK_MEASURED void workload_permutation(const char* name, Form form) {
  constexpr std::uint64_t kAtOnce = 8192;
  const std::uint64_t n = (std::uint64_t{1} << 28) + 1;
  const Permutation permutation(n, 0x0123456789abcdefULL, 3);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> in(kAtOnce);
  for (std::uint64_t& index : in) index = random() % n;
  std::vector<std::uint64_t> out(kAtOnce);
  collected_permutation(permutation, in, out, form);
  say(name, kAtOnce);
}

PENSTOCK_MEASURED void workload_draws(const char* name) {
  constexpr std::uint64_t n = 100'000;
  std::mt19937_64 random(4);
  std::vector<double> weights(n);
  for (double& weight : weights) weight = static_cast<double>(1 + random() % 1000);
  std::vector<penstock::Pick> picks(4096);
  for (penstock::Pick& pick : picks) pick.index = random() % n;
  const WeightTable table(weights);
  collected_draws(DrawTree(table, n, Key()), picks);
  say(name, picks.size());
}

PENSTOCK_MEASURED void workload_windows(const char* name, const Source& source, std::uint64_t count) {
  Rows rows(source, count);
  rows.drive_all(plan, find_spans);
  rows.drive_all(collected_plan, collected_spans);
  say(name, count);
}

PENSTOCK_MEASURED void workload_cast(const char* name, const char* fields, const char* field, const char* type) {
  const Schema schema = Schema::parse(fields);
  const Leaf& leaf = schema.leaves()[static_cast<std::size_t>(schema.find(field))];
  std::mt19937_64 random(4);
  const std::vector<std::byte> records = random_bytes(random, kWindow * schema.record_bytes());
  std::vector<std::byte> out(kWindow * 8);
  collected_cast(leaf, records.data(), schema.record_bytes(), kWindow, ScalarType::parse(type), out.data());
  say(name, kWindow);
}

namespace {

std::shared_ptr<const Source> token_windows(const std::string& folder) {
  const auto local = std::make_shared<penstock::LocalStore>();
  std::vector<penstock::Location> files;
  for (std::uint64_t i = 0; i < kFiles; ++i) files.push_back({local, token_file(folder, i)});
  return make_windows(penstock::layout::open_raw(files, R"([["token", "<u4"]])"), kWindow, 1);
}

#ifdef __clang__
constexpr const char* kCompiler = "clang";
constexpr int kCompilerVersion = __clang_major__;
#else
constexpr const char* kCompiler = "g++";
constexpr int kCompilerVersion = __GNUC__;
#endif

void measure(const std::string& folder) {
  fmt::print("{{\"compiler\": \"{} {}\"}}\n", kCompiler, kCompilerVersion);
  workload_permutation("permutation, generic", Form::Generic);
  if (supported(Form::Avx2)) workload_permutation("permutation, AVX2", Form::Avx2);
  workload_draws("weighted draw of 100,000");
  workload_windows("window planned, 100 files of tokens", *token_windows(folder), kWindows);
  const auto local = std::make_shared<penstock::LocalStore>();
  for (const char* layout : {"compact", "ids"}) {
    const auto dataset = penstock::layout::open_dataset({local, fmt::format("{}/{}", folder, layout)});
    const auto windows = make_windows(dataset, kWindow, 1);
    if (windows->info().keeps) windows->info().keeps->grant(UINT64_MAX);
    workload_windows(fmt::format("window and its spans, {}", layout).c_str(), *windows, kWindows);
  }
  workload_cast("cast, u4 to i8", R"([["token", "<u4"]])", "token", "int64");
  workload_cast("cast, u2 of packed (u2, u4) to i8", R"([["a", "<u2"], ["b", "<u4"]])", "a", "int64");
  workload_cast("cast, u4 of packed (u2, u4) to i8", R"([["a", "<u2"], ["b", "<u4"]])", "b", "int64");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  if (what != "make" && what != "measure") {
    fmt::print(stderr, "usage: {} make|measure FOLDER\n", argv[0]);
    return 2;
  }
  try {
    what == "make" ? make(argv[2]) : measure(argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
