// Token files of other people: which file is what, and what is refused in words.
#include "core/base/error.h"
#include "layout/dataset.h"
#include "tests/native/layout/drive.h"

#include <gtest/gtest.h>

#include <cstring>

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
    Driven driven;
    const auto source = layout::make_windows(dataset, dataset->record_count(), 0);
    drive(*source, 0, driven);
    const auto records = driven.records(*source);
    return {records.begin(), records.end()};
  }

  static layout::DatasetPtr open(const std::vector<std::string>& paths, const std::string& type) {
    return layout::open_raw(local(paths), type);
  }

  TemporaryFolder folder_;
  std::vector<std::uint16_t> tokens_ = {50256, 1, 2, 3, 65535};
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(RawTokensTest, BareFilesAreOneStreamInTheOrderGiven) {
  const std::string a = put("a.bin", bytes_of(tokens_));
  const std::string b = put("b.bin", bytes_of(std::vector<std::uint16_t>{7}));
  const auto dataset = open({a, put("empty.bin", {}), b}, kU2);
  EXPECT_EQ(dataset->kind, "raw");
  EXPECT_EQ(dataset->mode, "tokens");
  EXPECT_EQ(dataset->record_count(), 6U);
  EXPECT_EQ(all(dataset), bytes_of(std::vector<std::uint16_t>{50256, 1, 2, 3, 65535, 7}));
}

TEST_F(RawTokensTest, OlmosHeaderlessNpyIsABareFile) {
  const std::string path = put("part-0.npy", bytes_of(std::vector<std::uint32_t>{1, 2, 100000}));
  const auto dataset = open({path}, kU4);
  EXPECT_EQ(dataset->kind, "raw");
  EXPECT_EQ(all(dataset), bytes_of(std::vector<std::uint32_t>{1, 2, 100000}));
}

TEST_F(RawTokensTest, StructuredTypesFitBareFiles) {
  const std::string path = put("cells.bin", bytes_of(std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(open({path}, R"([["gene","<u2"],["count","<f4"]])")->record_count(), 2U);
}

TEST_F(RawTokensTest, LlmcFilesSayTheirTypeAndCount) {
  const auto gpt2 = open({put_llmc("gpt2.bin", 20240520, 1, 5, tokens_)}, "");
  EXPECT_EQ(gpt2->kind, "llm.c");
  EXPECT_EQ(gpt2->schema.json(), kU2);
  EXPECT_EQ(all(gpt2), bytes_of(tokens_));
  const std::vector<std::uint32_t> large = {128000, 5};
  const auto llama = open({put_llmc("llama.bin", 20240801, 7, 2, large)}, kU4);
  EXPECT_EQ(llama->schema.json(), kU4);
  EXPECT_EQ(all(llama), bytes_of(large));
}

TEST_F(RawTokensTest, TruncatedLongerAndWrongLlmcFilesAreRefused) {
  const auto opening = [](const std::string& path, const char* type = "") { return [=] { open({path}, type); }; };
  EXPECT_SAYS(message_of(opening(put_llmc("short.bin", 20240520, 1, 6, tokens_)), ErrorKind::Corruption),
              "says 6 records");
  EXPECT_SAYS(message_of(opening(put_llmc("long.bin", 20240520, 1, 4, tokens_), kU2), ErrorKind::Corruption),
              "says 4 records");
  EXPECT_SAYS(message_of(opening(put_llmc("version.bin", 20240520, 2, 5, tokens_)), ErrorKind::Corruption),
              "version 1 is wanted");
  EXPECT_SAYS(message_of(opening(put_llmc("negative.bin", 20240801, 7, -5, tokens_)), ErrorKind::Corruption),
              "-5 tokens");
  EXPECT_SAYS(message_of(opening(put_llmc("eval.bin", 20240522, 1, 5, tokens_)), ErrorKind::InvalidArgument),
              "evaluation");
  EXPECT_SAYS(message_of(opening(put_llmc("type.bin", 20240520, 1, 5, tokens_), kU4), ErrorKind::InvalidArgument),
              "dtype given");
  EXPECT_SAYS(message_of(opening(put_llmc("magic.bin", 20240519, 1, 5, tokens_)), ErrorKind::InvalidArgument),
              "give the dtype, u2");
  const std::string header = put("header.bin", bytes_of(std::vector<std::int32_t>{20240520, 1, 5, 0, 0}));
  EXPECT_SAYS(message_of(opening(header, kU2), ErrorKind::Corruption), "20 bytes");
}

TEST_F(RawTokensTest, ABareFileThatBeginsLikeLlmcByChanceIsBare) {
  std::vector<std::uint32_t> tokens(300, 9);
  tokens[0] = 20240801;
  EXPECT_EQ(open({put("chance.bin", bytes_of(tokens))}, kU4)->kind, "raw");
}

TEST_F(RawTokensTest, RealNpyFilesSayTheirTypeAndCount) {
  const char* header = "{'descr': '<u2', 'fortran_order': False, 'shape': (5,), }   ";
  const auto dataset = open({put_npy("a.npy", header, bytes_of(tokens_))}, "");
  EXPECT_EQ(dataset->kind, "numpy");
  EXPECT_EQ(dataset->schema.json(), kU2);
  EXPECT_EQ(all(dataset), bytes_of(tokens_));
}

TEST_F(RawTokensTest, StructuredNpyFilesKeepTheirFields) {
  const char* header =
      "{'descr': [('a', '<u2'), ('b', [('x', '|u1', (2,))])], 'fortran_order': False, 'shape': (2,), }";
  const auto dataset = open({put_npy("s.npy", header, std::vector<std::byte>(8))}, "");
  ASSERT_EQ(dataset->schema.leaves().size(), 2U);
  EXPECT_EQ(dataset->schema.leaves()[1].name, "b.x");
  EXPECT_EQ(dataset->schema.leaves()[1].dims, std::vector<std::uint64_t>{2});
}

TEST_F(RawTokensTest, NpyFilesThatCannotBeAreRefused) {
  const auto refusal = [&](const char* name, const char* header, ErrorKind kind, const char* type = "") {
    const std::string path = put_npy(name, header, bytes_of(tokens_));
    return message_of([&] { open({path}, type); }, kind);
  };
  const ErrorKind corrupt = ErrorKind::Corruption;
  const ErrorKind invalid = ErrorKind::InvalidArgument;
  EXPECT_SAYS(refusal("1.npy", "{'descr': '<u2', 'fortran_order': False, 'shape': (6,)}", corrupt), "says 6 records");
  EXPECT_SAYS(refusal("2.npy", "{'descr': '<u2', 'fortran_order': False, 'shape': (1, 5)}", invalid), "reshape(-1)");
  EXPECT_SAYS(refusal("3.npy", "{'descr': '>u2', 'fortran_order': False, 'shape': (5,)}", invalid), "3.npy");
  EXPECT_SAYS(refusal("4.npy", "{'descr': '|O', 'fortran_order': False, 'shape': (5,)}", invalid), "4.npy");
  EXPECT_SAYS(refusal("5.npy", "{'descr': '<u2', 'shape': (5,)}", invalid, kU4), "dtype given");
  for (const char* header : {"", "{", "import os", "{'descr': '<u2'}", "{'descr': \"<\\u0032\", 'shape': (5,)}",
                             "{'descr': '<u2', 'shape': 5}", "[[[[", "{'shape': (5,), 'descr': '<u2'"}) {
    EXPECT_SAYS(refusal("6.npy", header, corrupt), "NumPy header");
  }
  EXPECT_SAYS(refusal("7.npy", ("{'descr': " + std::string(5000, '[')).c_str(), corrupt), "NumPy header");
  const std::string truncated = put("8.npy", bytes_of(std::vector<unsigned char>{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0}));
  EXPECT_SAYS(message_of([&] { open({truncated}, ""); }, corrupt), "truncated");
}

TEST_F(RawTokensTest, ASizeThatIsNoMultipleIsCorrupt) {
  const std::string path = put("odd.bin", std::vector<std::byte>(4095, std::byte{1}));
  EXPECT_SAYS(message_of([&] { open({path}, kU2); }, ErrorKind::Corruption), "4,095 bytes is not a multiple of 2");
}

TEST_F(RawTokensTest, MissingFilesFoldersAndNoTypeAreRefused) {
  message_of([&] { open({folder_.path("none.bin")}, kU2); }, ErrorKind::NotFound);
  EXPECT_SAYS(message_of([&] { open({folder_.path()}, kU2); }, ErrorKind::InvalidArgument), "a folder");
  EXPECT_SAYS(message_of([&] { open({put("a.bin", bytes_of(tokens_))}, ""); }, ErrorKind::InvalidArgument), "dtype");
  message_of([&] { open({}, kU2); }, ErrorKind::InvalidArgument);
}

TEST_F(RawTokensTest, FilesThatDoNotAgreeAreRefused) {
  const std::string llmc = put_llmc("a.bin", 20240520, 1, 5, tokens_);
  const std::string bare = put("b.bin", bytes_of(tokens_));
  EXPECT_SAYS(message_of([&] { open({llmc, bare}, kU2); }, ErrorKind::InvalidArgument), "llm.c");
}

TEST_F(RawTokensTest, TheFingerprintTellsContentTypeAndOrderApartButNotPaths) {
  const std::string a = put("a.bin", bytes_of(std::vector<std::uint16_t>{1, 2}));
  const std::string b = put("b.bin", bytes_of(std::vector<std::uint16_t>{1, 3}));
  const std::string copy = put("elsewhere/a.bin", bytes_of(std::vector<std::uint16_t>{1, 2}));
  const auto fingerprint = [](std::vector<std::string> paths, const char* type) {
    return open(paths, type)->fingerprint;
  };
  EXPECT_EQ(fingerprint({a}, kU2), fingerprint({copy}, kU2));
  EXPECT_EQ(fingerprint({a}, kU2).size(), 32U);
  EXPECT_NE(fingerprint({a}, kU2), fingerprint({b}, kU2));
  EXPECT_NE(fingerprint({a}, kU2), fingerprint({a}, kU4));
  EXPECT_NE(fingerprint({a, b}, kU2), fingerprint({b, a}, kU2));
}

TEST_F(RawTokensTest, ConcatenatedDatasetsAreOneStreamAndTheirKindsMustAgree) {
  const auto a = open({put("a.bin", bytes_of(std::vector<std::uint16_t>{1, 2}))}, kU2);
  const auto b = open({put("b.bin", bytes_of(std::vector<std::uint16_t>{3}))}, kU2);
  const auto c = open({put_llmc("c.bin", 20240520, 1, 5, tokens_)}, "");
  const auto both = layout::concatenate({a, b});
  EXPECT_EQ(all(both), bytes_of(std::vector<std::uint16_t>{1, 2, 3}));
  EXPECT_NE(both->fingerprint, layout::concatenate({b, a})->fingerprint);
  EXPECT_EQ(layout::concatenate({a})->fingerprint, a->fingerprint);
  EXPECT_SAYS(message_of([&] { layout::concatenate({a, c}); }, ErrorKind::InvalidArgument), "kind raw and llm.c");
}

}  // namespace
}  // namespace penstock::testing
