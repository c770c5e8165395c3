// Megatron's .bin + .idx against a model of its documents; what is refused. (Files that megatron-core itself wrote are
// read by tests/python/data/test_open_foreign.py.)
#include "layout/foreign/megatron.h"

#include "core/base/error.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace penstock::testing {
namespace {

using Documents = std::vector<std::vector<std::int32_t>>;  // the lengths of each document's sequences

struct IdxParts {
  std::uint64_t version = 1;
  std::uint8_t code = 8;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> pointers;
  std::vector<std::int64_t> documents = {0};
  std::vector<std::int8_t> modes;
};

IdxParts parts_of(const Documents& documents) {
  IdxParts parts;
  std::int64_t byte = 0;
  for (const auto& document : documents) {
    for (const std::int32_t length : document) {
      parts.lengths.push_back(length);
      parts.pointers.push_back(byte);
      byte += 2 * length;
    }
    parts.documents.push_back(static_cast<std::int64_t>(parts.lengths.size()));
  }
  return parts;
}

template <typename T>
void append(std::vector<std::byte>& out, const std::vector<T>& values) {
  const std::vector<std::byte> bytes = bytes_of(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> idx_bytes(const IdxParts& parts) {
  std::vector<std::byte> out = bytes_of(std::vector<char>{'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0});
  append(out, std::vector<std::uint64_t>{parts.version});
  append(out, std::vector<std::uint8_t>{parts.code});
  append(out, std::vector<std::uint64_t>{parts.lengths.size(), parts.documents.size()});
  append(out, parts.lengths);
  append(out, parts.pointers);
  append(out, parts.documents);
  append(out, parts.modes);
  return out;
}

class MegatronTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const IdxParts& parts, std::uint64_t tokens) {
    std::vector<std::uint16_t> stream(tokens);
    std::iota(stream.begin(), stream.end(), std::uint16_t{7});
    write_file(folder_.path(name + ".bin"), bytes_of(stream));
    write_file(folder_.path(name + ".idx"), idx_bytes(parts));
    return folder_.path(name);
  }
  std::string put(const std::string& name, const Documents& documents) {
    const IdxParts parts = parts_of(documents);
    return put(name, parts, std::accumulate(parts.lengths.begin(), parts.lengths.end(), std::uint64_t{0}));
  }

  static layout::DatasetPtr open(const std::vector<std::string>& prefixes) {
    return layout::open_megatron(local(prefixes));
  }
  void expect_refused(const IdxParts& parts, std::uint64_t tokens, ErrorKind kind, const std::string& words = "") {
    const std::string prefix = put("refused", parts, tokens);
    expect_error([&] { open({prefix}); }, kind, words);
  }

  TemporaryFolder folder_;
};

std::vector<std::uint64_t> lengths_of(const Documents& documents) {
  std::vector<std::uint64_t> lengths;
  for (const auto& each : documents) lengths.push_back(std::accumulate(each.begin(), each.end(), std::uint64_t{0}));
  return lengths;
}

void expect_tokens(const Driven& row, std::uint64_t first) {
  for (std::uint64_t k = 0; k < row.row.length; ++k) {
    const auto wanted = static_cast<std::uint16_t>(first + k + 7);
    ASSERT_EQ(std::memcmp(row.row.records + 2 * k, &wanted, 2), 0);
  }
}

// Windows have the spans of a dataset of documents of these lengths.
void expect_windows(const layout::DatasetPtr& dataset, const Model& model, std::uint64_t window) {
  const auto source = layout::make_windows(dataset, window, 1);
  for (std::uint64_t i = 0; i < source->info().size; ++i) {
    const std::uint64_t begin = i * window;
    const Driven row = driven(*source, i);
    ASSERT_EQ(row.bytes_read(".bin"), 2 * (window + 1));
    expect_tokens(row, begin);
    const std::vector<Span> wanted = model.spans(begin, begin + window + 1);
    ASSERT_EQ(row.row.spans.size(), wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      ASSERT_EQ(place_of(row.row.spans[k]), place_of(wanted[k]));
      ASSERT_EQ(row.row.spans[k].raw, nullptr);
    }
  }
}

void expect_documents(const layout::DatasetPtr& dataset, const std::vector<std::uint64_t>& lengths) {
  const auto source = layout::make_documents(dataset);
  ASSERT_EQ(source->info().size, lengths.size());
  std::uint64_t first = 0;
  for (std::uint64_t d = 0; d < lengths.size(); ++d) {
    const Driven row = driven(*source, d);
    ASSERT_EQ(row.row.length, lengths[d]) << "document " << d;
    expect_tokens(row, first);
    first += lengths[d];
    ASSERT_EQ(row.row.spans.size(), 1U);
    ASSERT_EQ(row.row.spans[0].entry, d);
  }
}

TEST_F(MegatronTest, EveryWindowAndDocumentOfASmallDataset) {
  const Documents documents = {{3}, {}, {1, 2}, {0}, {}, {4, 0, 1}, {2}, {}};
  const auto dataset = open({put("small", documents)});
  const Model model(layout::SpanKind::Compact, {shard_of(lengths_of(documents))});
  ASSERT_EQ(dataset->record_count(), 13U);
  for (std::uint64_t window = 1; window <= 12; ++window) expect_windows(dataset, model, window);
  expect_documents(dataset, lengths_of(documents));
  const auto windows = layout::make_windows(dataset, 3, 1);
  EXPECT_EQ(driven(*windows, 1, Parts::Records).reads_of(".idx"), 0U);
  EXPECT_EQ(driven(*windows, 1, Parts::Spans | Parts::Entries).reads_of(".bin"), 0U);
  EXPECT_EQ(driven(*layout::make_documents(dataset), 0, Parts::Spans).reads_of(".bin"), 0U);
}

// Enough documents and sequences for many blocks of samples, closed for either reason, and runs of empty documents.
TEST_F(MegatronTest, EveryWindowAndDocumentAcrossManyBlocks) {
  Documents documents;
  std::uint64_t state = 7;
  for (int i = 0; i < 5000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const bool empty = i > 1500 && i < 3000;
    std::vector<std::int32_t> sequences;
    const std::uint64_t count = i == 3500 ? 20000 : empty ? 0 : (state >> 60);
    for (std::uint64_t k = 0; k < count; ++k) sequences.push_back(static_cast<std::int32_t>((state >> (k % 32)) % 3));
    documents.push_back(sequences);
  }
  const auto dataset = open({put("large", documents)});
  ASSERT_GT(dataset->shards[0].megatron->samples.size(), 6U);
  const Model model(layout::SpanKind::Compact, {shard_of(lengths_of(documents))});
  for (const std::uint64_t window : {37U, 1000U, 30000U}) expect_windows(dataset, model, window);
  expect_documents(dataset, lengths_of(documents));
}

TEST_F(MegatronTest, AWindowReadsABoundedPartOfTheIndex) {
  const auto dataset = open({put("many", Documents(20000, {3})) + ".idx"});
  const auto source = layout::make_windows(dataset, 30, 0);
  for (std::uint64_t i = 0; i < source->info().size; i += 17) {
    ASSERT_LE(driven(*source, i).bytes_read(".idx"), 2 * 2 * 8 * layout::MegatronIndex::kBlockDocuments);
  }
}

TEST_F(MegatronTest, PairsEndToEndAreOneDatasetAndTheFingerprintSeesTheWholeIndex) {
  const auto dataset = open({put("a", {{3}, {2}}), put("b", {{1}}) + ".bin"});
  EXPECT_EQ(dataset->record_count(), 6U);
  EXPECT_EQ(dataset->span_count(), 3U);
  EXPECT_NE(dataset->fingerprint, open({folder_.path("a")})->fingerprint);
  const std::vector<std::int32_t> ones(3000, 1);
  Documents moved = {ones, ones, ones};
  moved[0].pop_back();
  moved[1].push_back(1);
  const std::string fingerprint = open({put("c", {ones, ones, ones})})->fingerprint;
  EXPECT_EQ(open({put("d", {ones, ones, ones})})->fingerprint, fingerprint);
  EXPECT_NE(open({put("e", moved)})->fingerprint, fingerprint);
}

TEST_F(MegatronTest, IndexesThatCannotBeAreRefused) {
  const IdxParts good = parts_of({{3, 1}, {2}});
  expect_refused(good, 5, ErrorKind::Corruption, "6 tokens");
  expect_refused(good, 7, ErrorKind::Corruption, "14 bytes");
  const struct {
    void (*change)(IdxParts&);
    ErrorKind kind;
    const char* words;
  } kRefusals[] = {
      {[](IdxParts& p) { p.version = 2; }, ErrorKind::InvalidArgument, "version 2"},
      {[](IdxParts& p) { p.code = 7; }, ErrorKind::InvalidArgument, "float32"},
      {[](IdxParts& p) { p.code = 9; }, ErrorKind::Corruption, "code 9"},
      {[](IdxParts& p) { p.modes.assign(3, 0); }, ErrorKind::InvalidArgument, "multimodal"},
      {[](IdxParts& p) { p.modes.assign(1, 0); }, ErrorKind::Corruption, ""},
      {[](IdxParts& p) { p.lengths[1] = -1; }, ErrorKind::Corruption, ""},
      {[](IdxParts& p) { p.pointers[1] = 4; }, ErrorKind::Corruption, ""},
      {[](IdxParts& p) { p.documents[0] = 1; }, ErrorKind::Corruption, ""},
      {[](IdxParts& p) { p.documents[1] = 4; }, ErrorKind::Corruption, ""},
      {[](IdxParts& p) { p.documents[1] = -1; }, ErrorKind::Corruption, ""},
      {[](IdxParts& p) { p.documents[2] = 2; }, ErrorKind::Corruption, ""},
      {[](IdxParts& p) { p.documents.clear(); }, ErrorKind::Corruption, ""},
  };
  for (const auto& [change, kind, words] : kRefusals) {
    IdxParts parts = good;
    change(parts);
    expect_refused(parts, 6, kind, words);
  }
}

TEST_F(MegatronTest, TruncatedAndWrongFilesAreRefusedWithoutAllocatingWhatTheyClaim) {
  const std::string prefix = put("t", {{3, 1}, {2}});
  std::vector<std::byte> idx = idx_bytes(parts_of({{3, 1}, {2}}));
  const auto expect_corrupt = [&](std::span<const std::byte> bytes, const std::string& words) {
    write_file(prefix + ".idx", bytes);
    expect_error([&] { open({prefix}); }, ErrorKind::Corruption, words);
  };
  for (std::size_t size = 0; size < idx.size(); ++size) expect_corrupt(std::span(idx).first(size), "");
  const std::uint64_t huge = UINT64_MAX / 4;
  for (const std::size_t at : {18U, 26U}) {
    std::vector<std::byte> claims = idx;
    std::memcpy(&claims[at], &huge, 8);
    expect_corrupt(claims, "");
  }
  idx[0] = std::byte{'X'};
  expect_corrupt(idx, "MMIDIDX");
  expect_error([&] { open({folder_.path("none")}); }, ErrorKind::NotFound, "");
}

// The .idx is rewritten, same size, after it was opened.
TEST_F(MegatronTest, AnIndexThatChangesAfterOpeningIsFoundOutOrHarmless) {
  const Documents documents(50, {3, 2});
  const std::string prefix = put("t", documents);
  const std::vector<std::byte> idx = idx_bytes(parts_of(documents));
  const auto dataset = open({prefix});
  const auto windows = layout::make_windows(dataset, 7, 0);
  const auto view = layout::make_documents(dataset);
  std::uint64_t refused = 0;
  for (std::size_t at = 34; at + 8 <= idx.size(); at += 11) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{9}, UINT64_MAX}) {
      std::vector<std::byte> evil = idx;
      std::memcpy(&evil[at], &value, 8);
      write_file(prefix + ".idx", evil);
      refused += drive_all(*windows, 3) + drive_all(*view, 3);
    }
  }
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace penstock::testing
