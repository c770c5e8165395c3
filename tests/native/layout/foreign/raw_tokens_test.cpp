// Token files of other people: which file is what, and what is refused in words.
#include "core/base/error.h"
#include "layout/dataset.h"
#include "tests/native/layout/drive.h"

#include <gtest/gtest.h>

namespace penstock::testing {
namespace {

constexpr const char* kU2 = R"([["token","<u2"]])";
constexpr const char* kU4 = R"([["token","<u4"]])";

class RawTokensTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::vector<std::byte>& bytes) {
    write_file(folder_.path(name), bytes);
    return folder_.path(name);
  }

  template <typename T>
  std::string put_llmc(const std::string& name, std::int32_t magic, std::int32_t version, std::int32_t count,
                       const std::vector<T>& tokens) {
    std::vector<std::int32_t> header(256, 0);
    header[0] = magic;
    header[1] = version;
    header[2] = count;
    std::vector<std::byte> bytes = bytes_of(header);
    const std::vector<std::byte> more = bytes_of(tokens);
    bytes.insert(bytes.end(), more.begin(), more.end());
    return put(name, bytes);
  }

  std::string put_npy(const std::string& name, std::string header, const std::vector<std::byte>& data) {
    header += "\n";
    std::vector<std::byte> bytes = bytes_of(std::vector<unsigned char>{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0});
    const std::vector<std::byte> size = bytes_of(std::vector{static_cast<std::uint16_t>(header.size())});
    bytes.insert(bytes.end(), size.begin(), size.end());
    const auto text = std::as_bytes(std::span(header));
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.insert(bytes.end(), data.begin(), data.end());
    return put(name, bytes);
  }

  // All records of the dataset, read as one window.
  static std::vector<std::byte> all(const layout::DatasetPtr& dataset) {
    const auto source = layout::make_windows(dataset, dataset->record_count(), 0);
    const Driven row = driven(*source, 0);
    return {row.records(*source).begin(), row.records(*source).end()};
  }

  static layout::DatasetPtr open(const std::vector<std::string>& paths, const std::string& type) {
    return layout::open_raw(local(paths), type);
  }
  static void expect_refused(const std::vector<std::string>& paths, const std::string& type, ErrorKind kind,
                             const std::string& words) {
    expect_error([&] { open(paths, type); }, kind, words);
  }

  TemporaryFolder folder_;
  std::vector<std::uint16_t> tokens_ = {50256, 1, 2, 3, 65535};
};

TEST_F(RawTokensTest, FilesAreOneStreamInTheOrderGiven) {
  const std::string a = put("a.bin", bytes_of(tokens_));
  const std::string b = put("b.bin", bytes_of(std::vector<std::uint16_t>{7}));
  const auto dataset = open({a, put("empty.bin", {}), b}, kU2);
  EXPECT_EQ(dataset->kind, "raw");
  EXPECT_EQ(dataset->mode, "tokens");
  EXPECT_EQ(all(dataset), bytes_of(std::vector<std::uint16_t>{50256, 1, 2, 3, 65535, 7}));
  const std::vector<std::uint32_t> large = {128000, 5};
  EXPECT_EQ(all(open({put("part-0.npy", bytes_of(large))}, kU4)), bytes_of(large)) << "olmo's, without a header";
  EXPECT_EQ(open({a, b}, R"([["gene","<u2"]])")->record_count(), 6U);
}

TEST_F(RawTokensTest, FilesWithAHeaderSayTheirTypeAndCount) {
  const auto gpt2 = open({put_llmc("gpt2.bin", 20240520, 1, 5, tokens_)}, "");
  EXPECT_EQ(gpt2->kind, "llm.c");
  EXPECT_EQ(gpt2->schema.json(), kU2);
  EXPECT_EQ(all(gpt2), bytes_of(tokens_));
  const std::vector<std::uint32_t> large = {128000, 5};
  EXPECT_EQ(all(open({put_llmc("llama.bin", 20240801, 7, 2, large)}, kU4)), bytes_of(large));
  std::vector<std::uint32_t> chance(300, 9);
  chance[0] = 20240801;
  EXPECT_EQ(open({put("chance.bin", bytes_of(chance))}, kU4)->kind, "raw") << "it begins like llm.c's by chance";
  const char* header =
      "{'descr': [('a', '<u2'), ('b', [('x', '|u1', (2,))])], 'fortran_order': False, 'shape': (2,), }";
  const auto numpy = open({put_npy("s.npy", header, std::vector<std::byte>(8))}, "");
  EXPECT_EQ(numpy->kind, "numpy");
  ASSERT_EQ(numpy->schema.leaves().size(), 2U);
  EXPECT_EQ(numpy->schema.leaves()[1].name, "b.x");
  EXPECT_EQ(numpy->schema.leaves()[1].dims, std::vector<std::uint64_t>{2});
}

TEST_F(RawTokensTest, TruncatedLongerAndWrongLlmcFilesAreRefused) {
  const struct {
    std::int32_t magic;
    std::int32_t version;
    std::int32_t count;
    const char* type;
    ErrorKind kind;
    const char* words;
  } kRefusals[] = {
      {20240520, 1, 6, "", ErrorKind::Corruption, "says 6 records"},
      {20240520, 1, 4, kU2, ErrorKind::Corruption, "says 4 records"},
      {20240520, 2, 5, "", ErrorKind::Corruption, "version 1 is wanted"},
      {20240801, 7, -5, "", ErrorKind::Corruption, "-5 tokens"},
      {20240522, 1, 5, "", ErrorKind::InvalidArgument, "evaluation"},
      {20240520, 1, 5, kU4, ErrorKind::InvalidArgument, "dtype given"},
      {20240519, 1, 5, "", ErrorKind::InvalidArgument, "give the dtype, u2"},
  };
  for (const auto& each : kRefusals) {
    expect_refused({put_llmc("a.bin", each.magic, each.version, each.count, tokens_)}, each.type, each.kind,
                   each.words);
  }
  const std::string header = put("header.bin", bytes_of(std::vector<std::int32_t>{20240520, 1, 5, 0, 0}));
  expect_refused({header}, kU2, ErrorKind::Corruption, "20 bytes");
  expect_refused({put_llmc("a.bin", 20240520, 1, 5, tokens_), put("b.bin", bytes_of(tokens_))}, kU2,
                 ErrorKind::InvalidArgument, "llm.c");
}

TEST_F(RawTokensTest, NpyFilesThatCannotBeAreRefused) {
  const auto refused = [&](const std::string& header, ErrorKind kind, const char* words, const char* type = "") {
    expect_refused({put_npy("a.npy", header, bytes_of(tokens_))}, type, kind, words);
  };
  refused("{'descr': '<u2', 'fortran_order': False, 'shape': (6,)}", ErrorKind::Corruption, "says 6 records");
  refused("{'descr': '<u2', 'fortran_order': False, 'shape': (1, 5)}", ErrorKind::InvalidArgument, "reshape(-1)");
  refused("{'descr': '<u2', 'shape': (5,)}", ErrorKind::InvalidArgument, "dtype given", kU4);
  for (const char* header : {"", "{", "import os", "{'descr': '<u2'}", "{'descr': \"<\\u0032\", 'shape': (5,)}",
                             "{'descr': '<u2', 'shape': 5}", "[[[[", "{'shape': (5,), 'descr': '<u2'"}) {
    refused(header, ErrorKind::Corruption, "NumPy header");
  }
  refused("{'descr': " + std::string(5000, '['), ErrorKind::Corruption, "NumPy header");
  const std::string cut = put("cut.npy", bytes_of(std::vector<unsigned char>{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0}));
  expect_refused({cut}, "", ErrorKind::Corruption, "truncated");
}

TEST_F(RawTokensTest, OddSizesMissingFilesFoldersAndNoTypeAreRefused) {
  expect_refused({put("odd.bin", std::vector<std::byte>(4095, std::byte{1}))}, kU2, ErrorKind::Corruption,
                 "4,095 bytes is not a multiple of 2");
  expect_refused({folder_.path("none.bin")}, kU2, ErrorKind::NotFound, "");
  expect_refused({folder_.path()}, kU2, ErrorKind::InvalidArgument, "a folder");
  expect_refused({put("a.bin", bytes_of(tokens_))}, "", ErrorKind::InvalidArgument, "dtype");
  expect_refused({}, kU2, ErrorKind::InvalidArgument, "");
}

TEST_F(RawTokensTest, TheFingerprintTellsContentTypeAndOrderApartButNotPaths) {
  const std::string a = put("a.bin", bytes_of(std::vector<std::uint16_t>{1, 2}));
  const std::string b = put("b.bin", bytes_of(std::vector<std::uint16_t>{3, 4}));
  const std::string copy = put("elsewhere/a.bin", bytes_of(std::vector<std::uint16_t>{1, 2}));
  const std::string fingerprint = open({a}, kU2)->fingerprint;
  EXPECT_EQ(fingerprint.size(), 32U);
  EXPECT_EQ(open({copy}, kU2)->fingerprint, fingerprint);
  EXPECT_NE(open({b}, kU2)->fingerprint, fingerprint);
  EXPECT_NE(open({a}, kU4)->fingerprint, fingerprint);
  EXPECT_NE(open({a, b}, kU2)->fingerprint, open({b, a}, kU2)->fingerprint);
  const auto first = open({a}, kU2);
  const auto second = open({b}, kU2);
  const auto both = layout::concatenate({first, second});
  EXPECT_EQ(all(both), bytes_of(std::vector<std::uint16_t>{1, 2, 3, 4}));
  EXPECT_NE(both->fingerprint, layout::concatenate({second, first})->fingerprint);
  EXPECT_EQ(layout::concatenate({first})->fingerprint, fingerprint);
  const auto llmc = open({put_llmc("c.bin", 20240520, 1, 5, tokens_)}, "");
  expect_error([&] { layout::concatenate({first, llmc}); }, ErrorKind::InvalidArgument, "kind raw and llm.c");
}

}  // namespace
}  // namespace penstock::testing
