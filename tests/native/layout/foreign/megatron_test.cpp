// Megatron's .bin + .idx against a model of its documents; what is refused. (Files that megatron-core itself wrote are
// read by tests/python/data/test_open_foreign.py.)
#include "layout/foreign/megatron.h"

#include "core/base/error.h"
#include "layout/dataset.h"
#include "tests/native/layout/drive.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <tuple>

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
  std::string refusal(const IdxParts& parts, std::uint64_t tokens, ErrorKind kind) {
    const std::string prefix = put("refused", parts, tokens);
    return message_of([&] { open({prefix}); }, kind);
  }

  TemporaryFolder folder_;
};

std::vector<std::uint64_t> starts_of(const Documents& documents) {
  std::vector<std::uint64_t> starts = {0};
  for (const auto& document : documents) {
    starts.push_back(std::accumulate(document.begin(), document.end(), starts.back()));
  }
  return starts;
}

void expect_windows(const layout::DatasetPtr& dataset, const std::vector<std::uint64_t>& starts, std::uint64_t window) {
  const auto source = layout::make_windows(dataset, window, 1);
  for (std::uint64_t i = 0; i < source->info().size; ++i) {
    const std::uint64_t begin = i * window;
    const std::uint64_t end = begin + window + 1;
    Driven driven;
    drive(*source, i, driven);
    ASSERT_EQ(driven.bytes_read(".bin"), 2 * (window + 1));
    for (std::uint64_t k = 0; k <= window; ++k) {
      const auto wanted = static_cast<std::uint16_t>(begin + k + 7);
      ASSERT_EQ(std::memcmp(driven.row.records + 2 * k, &wanted, 2), 0);
    }
    std::size_t at = 0;
    for (std::uint64_t d = 0; d + 1 < starts.size(); ++d) {
      const std::uint64_t from = std::max(starts[d], begin);
      const std::uint64_t to = std::min(starts[d + 1], end);
      if (from >= to) continue;
      ASSERT_LT(at, driven.row.spans.size());
      const Span& span = driven.row.spans[at++];
      ASSERT_EQ(std::tuple(span.start, span.stop, span.begins, span.ends, span.offset, span.entry),
                std::tuple(from - begin, to - begin, starts[d] >= begin, starts[d + 1] <= end,
                           static_cast<std::int64_t>(from - starts[d]), d));
      ASSERT_EQ(span.raw, nullptr);
    }
    ASSERT_EQ(at, driven.row.spans.size());
  }
}

void expect_documents(const layout::DatasetPtr& dataset, const std::vector<std::uint64_t>& starts) {
  const auto source = layout::make_documents(dataset);
  ASSERT_EQ(source->info().size, starts.size() - 1);
  for (std::uint64_t d = 0; d < source->info().size; ++d) {
    Driven driven;
    drive(*source, d, driven);
    ASSERT_EQ(driven.row.length, starts[d + 1] - starts[d]) << "document " << d;
    for (std::uint64_t k = 0; k < driven.row.length; ++k) {
      const auto wanted = static_cast<std::uint16_t>(starts[d] + k + 7);
      ASSERT_EQ(std::memcmp(driven.row.records + 2 * k, &wanted, 2), 0);
    }
    ASSERT_EQ(driven.row.spans.size(), 1U);
    ASSERT_EQ(driven.row.spans[0].entry, d);
  }
}

TEST_F(MegatronTest, EveryWindowAndDocumentOfASmallDataset) {
  const Documents documents = {{3}, {}, {1, 2}, {0}, {}, {4, 0, 1}, {2}, {}};
  const auto dataset = open({put("small", documents)});
  const std::vector<std::uint64_t> starts = starts_of(documents);
  ASSERT_EQ(dataset->record_count(), 13U);
  for (std::uint64_t window = 1; window <= 12; ++window) expect_windows(dataset, starts, window);
  expect_documents(dataset, starts);
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
  const std::vector<std::uint64_t> starts = starts_of(documents);
  for (const std::uint64_t window : {37U, 1000U, 30000U}) expect_windows(dataset, starts, window);
  expect_documents(dataset, starts);
}

TEST_F(MegatronTest, AWindowReadsABoundedPartOfTheIndex) {
  const Documents documents(20000, {3});
  const auto dataset = open({put("many", documents) + ".idx"});
  const auto source = layout::make_windows(dataset, 30, 0);
  for (std::uint64_t i = 0; i < source->info().size; i += 17) {
    Driven driven;
    drive(*source, i, driven);
    ASSERT_LE(driven.bytes_read(".idx"), 2 * 2 * 8 * layout::MegatronIndex::kBlockDocuments);
  }
}

TEST_F(MegatronTest, PairsEndToEndAreOneDataset) {
  const auto dataset = open({put("a", {{3}, {2}}), put("b", {{1}}) + ".bin"});
  EXPECT_EQ(dataset->record_count(), 6U);
  EXPECT_EQ(dataset->span_count(), 3U);
  EXPECT_NE(dataset->fingerprint, open({folder_.path("a")})->fingerprint);
}

TEST_F(MegatronTest, TheFingerprintSeesTheWholeIndex) {
  std::vector<std::int32_t> ones(3000, 1);
  const std::string a = put("a", {ones, ones, ones});
  Documents moved = {ones, ones, ones};
  moved[0].pop_back();
  moved[1].push_back(1);
  const std::string b = put("b", moved);
  EXPECT_NE(open({a})->fingerprint, open({b})->fingerprint);
  EXPECT_EQ(open({a})->fingerprint, open({put("c", {ones, ones, ones})})->fingerprint);
}

TEST_F(MegatronTest, IndexesThatCannotBeAreRefused) {
  const IdxParts good = parts_of({{3, 1}, {2}});
  const auto change = [&](const std::function<void(IdxParts&)>& edit) {
    IdxParts parts = good;
    edit(parts);
    return parts;
  };
  const ErrorKind corrupt = ErrorKind::Corruption;
  const ErrorKind invalid = ErrorKind::InvalidArgument;
  EXPECT_NE(refusal(good, 5, corrupt).find("6 tokens"), std::string::npos);
  EXPECT_NE(refusal(good, 7, corrupt).find("14 bytes"), std::string::npos);
  EXPECT_NE(refusal(change([](IdxParts& p) { p.version = 2; }), 6, invalid).find("version 2"), std::string::npos);
  EXPECT_NE(refusal(change([](IdxParts& p) { p.code = 7; }), 6, invalid).find("float32"), std::string::npos);
  EXPECT_NE(refusal(change([](IdxParts& p) { p.code = 9; }), 6, corrupt).find("code 9"), std::string::npos);
  EXPECT_NE(refusal(change([](IdxParts& p) {
                      p.modes = {0, 0, 0};
                    }),
                    6, invalid)
                .find("multimodal"),
            std::string::npos);
  refusal(change([](IdxParts& p) { p.modes = {0}; }), 6, corrupt);
  refusal(change([](IdxParts& p) { p.lengths[1] = -1; }), 6, corrupt);
  refusal(change([](IdxParts& p) { p.pointers[1] = 4; }), 6, corrupt);
  refusal(change([](IdxParts& p) { p.documents[0] = 1; }), 6, corrupt);
  refusal(change([](IdxParts& p) { p.documents[1] = 4; }), 6, corrupt);
  refusal(change([](IdxParts& p) { p.documents[1] = -1; }), 6, corrupt);
  refusal(change([](IdxParts& p) { p.documents[2] = 2; }), 6, corrupt);
  refusal(change([](IdxParts& p) { p.documents.clear(); }), 6, corrupt);
}

TEST_F(MegatronTest, TruncatedAndWrongFilesAreRefusedWithoutAllocatingWhatTheyClaim) {
  const std::string prefix = put("t", {{3, 1}, {2}});
  std::vector<std::byte> idx = idx_bytes(parts_of({{3, 1}, {2}}));
  for (std::size_t size = 0; size < idx.size(); ++size) {
    write_file(prefix + ".idx", std::span(idx).first(size));
    message_of([&] { open({prefix}); }, ErrorKind::Corruption);
  }
  const std::uint64_t huge = UINT64_MAX / 4;
  for (const std::size_t at : {18U, 26U}) {
    std::vector<std::byte> claims = idx;
    std::memcpy(&claims[at], &huge, 8);
    write_file(prefix + ".idx", claims);
    message_of([&] { open({prefix}); }, ErrorKind::Corruption);
  }
  idx[0] = std::byte{'X'};
  write_file(prefix + ".idx", idx);
  EXPECT_NE(message_of([&] { open({prefix}); }, ErrorKind::Corruption).find("MMIDIDX"), std::string::npos);
  message_of([&] { open({folder_.path("none")}); }, ErrorKind::NotFound);
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
      for (const Source* source : {windows.get(), view.get()}) {
        for (std::uint64_t i = 0; i < source->info().size; i += 3) {
          Driven driven;
          try {
            drive(*source, i, driven);
          } catch (const Error& error) {
            ASSERT_EQ(error.kind(), ErrorKind::Corruption);
            ++refused;
          }
        }
      }
    }
  }
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace penstock::testing
