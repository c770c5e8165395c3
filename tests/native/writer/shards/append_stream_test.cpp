#include "layout/dataset.h"
#include "tests/native/writer/small_datasets.h"
#include "writer/files/output_file.h"
#include "writer/files/stream_input.h"
#include "writer/verify/verify.h"

#include <cstring>
#include <random>

namespace penstock::writer {
namespace {

/// Records that native code reads of token files make the shard that appends of arrays make.
class AppendStreamTest : public SmallDatasets {
 protected:
  static constexpr std::uint64_t kPieceRecords = OutputFile::kPieceBytes / 2;

  static WriterOptions options(const std::string& mode = "stream", const std::string& type = "<u2") {
    WriterOptions made;
    made.format.mode = mode;
    if (mode == "stream") made.format.layout = "compact";
    if (mode == "stream") made.format.codec_json = layout::kBoundariesCodecJson;
    made.format.schema = Schema::parse(R"([["token",")" + type + R"("]])");
    made.shard = 3;
    return made;
  }

  // Files of these numbers of u2 tokens below `most`, which `tokens_` has end to end, as a dataset.
  layout::DatasetPtr files(const std::vector<std::size_t>& sizes, unsigned most = 50'000) {
    std::mt19937_64 random(3);
    std::vector<Location> locations;
    tokens_.clear();
    for (const std::size_t size : sizes) {
      std::string text(2 * size, '\0');
      for (std::size_t i = 0; i < size; ++i) {
        tokens_.push_back(static_cast<std::uint16_t>(random() % most));
        std::memcpy(text.data() + 2 * i, &tokens_.back(), 2);
      }
      locations.push_back({store_, root_ / ("f" + std::to_string(locations.size()) + ".bin")});
      put(locations.back().path, text);
    }
    return layout::open_raw(locations, R"([["token","<u2"]])");
  }

  // What append_batch makes of tokens from `first` on.
  template <typename Token = std::uint16_t>
  std::map<std::string, std::string> of_arrays(const WriterOptions& made, std::uint64_t first,
                                               const std::vector<std::uint64_t>& lengths) {
    std::uint64_t count = 0;
    for (const std::uint64_t length : lengths) count += length;
    const std::vector<Token> tokens(tokens_.begin() + static_cast<std::ptrdiff_t>(first),
                                    tokens_.begin() + static_cast<std::ptrdiff_t>(first + count));
    const std::vector<std::uint64_t> ends(made.format.has_metadata() ? lengths.size() : 0, 0);
    DatasetWriter writer(root_ / "arrays", made);
    writer.append_batch(std::as_bytes(std::span(tokens)), lengths, {}, ends);
    writer.commit();
    auto found = contents(root_ / "arrays");
    std::filesystem::remove_all(root_ / "arrays");
    return found;
  }

  template <typename Append>
  std::map<std::string, std::string> of_stream(const WriterOptions& made, const Append& append) {
    DatasetWriter writer(root_ / "stream", made);
    append(writer);
    writer.commit();
    auto found = contents(root_ / "stream");
    std::filesystem::remove_all(root_ / "stream");
    return found;
  }

  std::shared_ptr<LocalStore> store_ = std::make_shared<LocalStore>();
  std::vector<std::uint16_t> tokens_;
};

TEST_F(AppendStreamTest, DocumentsAcrossPiecesAndFilesAreThoseOfArrays) {
  const auto from = files({kPieceRecords + 7, 0, 3, 2 * kPieceRecords, 9000});
  const std::vector<std::vector<std::uint64_t>> many{
      {0, 5, 0, kPieceRecords - 12, 1, 0, 13, 2 * kPieceRecords + 8000, 0}, {kPieceRecords}, {0, 0}, {}, {1, 2, 3}};
  for (const auto& lengths : many) {
    const auto stream = [&](DatasetWriter& writer) { writer.append_stream(*from, 7, lengths); };
    EXPECT_TRUE(of_stream(options(), stream) == of_arrays(options(), 7, lengths)) << lengths.size();
  }
  const auto in_steps = [&](DatasetWriter& writer) {
    writer.append_stream(*from, 7, many[1]);
    EXPECT_EQ(writer.records(), kPieceRecords);
    writer.append_stream(*from, 7 + kPieceRecords, many[4]);
  };
  EXPECT_TRUE(of_stream(options(), in_steps) == of_arrays(options(), 7, {kPieceRecords, 1, 2, 3}));
  const std::vector<std::uint64_t> all{from->record_count()};
  const auto tokens = [&](DatasetWriter& writer) { writer.append_stream(*from, 0, all); };
  EXPECT_TRUE(of_stream(options("tokens"), tokens) == of_arrays(options("tokens"), 0, all));
}

TEST_F(AppendStreamTest, ValuesBecomeAnotherTypeOrAreRefused) {
  const auto from = files({kPieceRecords + 5, 1000}, 250);
  const std::vector<std::uint64_t> lengths{900, kPieceRecords};
  const auto stream = [&](DatasetWriter& writer) { writer.append_stream(*from, 0, lengths); };
  const WriterOptions wide = options("stream", "<u4");
  EXPECT_TRUE(of_stream(wide, stream) == of_arrays<std::uint32_t>(wide, 0, lengths));
  const WriterOptions with_sign = options("stream", "<i2");
  EXPECT_TRUE(of_stream(with_sign, stream) == of_arrays(with_sign, 0, lengths));

  const auto large = files({1000}, 50'000);
  DatasetWriter writer(root_ / "refused", with_sign);
  const std::vector<std::uint64_t> one{1000};
  testing::expect_error([&] { writer.append_stream(*large, 0, one); }, ErrorKind::InvalidArgument,
                        "does not fit int16");
  testing::expect_error([&] { writer.commit(); }, ErrorKind::InvalidArgument, "this writer failed");
}

// One token after the other.
std::vector<std::uint64_t> cut_plainly(std::span<const std::uint16_t> tokens, const DatasetWriter::Cut& cut) {
  std::vector<std::uint64_t> lengths;
  bool is_open = false;
  for (const std::uint16_t token : tokens) {
    if (!cut.ends_document && token == cut.token) is_open = false;
    if (!is_open) lengths.push_back(0);
    ++lengths.back();
    is_open = !cut.ends_document || token != cut.token;
  }
  return lengths;
}

TEST_F(AppendStreamTest, ATokenCutsDocumentsWhereverItLies) {
  for (const unsigned most : {2U, 60U, 50'000U}) {
    const auto from = files({kPieceRecords + 7, 0, 3, kPieceRecords, 5, 130}, most);
    for (const bool ends : {true, false}) {
      for (const std::uint64_t token :
           {std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{65'543}}) {  // the last is none
        const DatasetWriter::Cut cut{token, ends};
        const std::vector<std::uint64_t> lengths = cut_plainly(tokens_, cut);
        const auto stream = [&](DatasetWriter& writer) {
          DatasetWriter::CutPart part;
          std::uint64_t documents = 0;
          std::uint64_t at = 0;
          for (const std::uint64_t stop :
               {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{100}, from->record_count()}) {
            part = writer.append_cut(*from, at, stop, cut, part.is_open);
            documents += part.documents;
            at = stop;
          }
          EXPECT_EQ(documents, lengths.size());
        };
        EXPECT_TRUE(of_stream(options(), stream) == of_arrays(options(), 0, lengths)) << most << ends << token;
      }
    }
  }
}

TEST_F(AppendStreamTest, WhatCannotBeIsRefusedAndLosesNothing) {
  const auto from = files({1000});
  const std::vector<std::uint64_t> one{1000};
  const auto expect_refused = [&](WriterOptions made) {
    DatasetWriter writer(root_ / "refused", std::move(made));
    EXPECT_FALSE(writer.can_append(*from));
    EXPECT_THROW(writer.append_stream(*from, 0, one), Error);
    EXPECT_FALSE(writer.has_failed());
  };
  WriterOptions whole = options();
  whole.shard.reset();
  expect_refused(whole);
  WriterOptions raw = options();
  raw.format.codec_json = R"({"name":"raw"})";
  expect_refused(raw);
  expect_refused(options("stream", "<f4"));
  WriterOptions columns = options();
  columns.format.columns = {{"score", {'f', 4}, {}}};
  expect_refused(columns);

  const auto stream = [&](DatasetWriter& writer) {
    EXPECT_TRUE(writer.can_append(*from));
    const std::vector<std::uint64_t> more{999, 2};
    const std::vector<std::uint64_t> huge{2, UINT64_MAX};
    EXPECT_THROW(writer.append_stream(*from, 0, more), Error);
    EXPECT_THROW(writer.append_stream(*from, 0, huge), Error);
    EXPECT_THROW(writer.append_stream(*from, 1001, {}), Error);
    EXPECT_THROW(static_cast<void>(writer.append_cut(*from, 2, 1, {1, true}, false)), Error);
    writer.append_stream(*from, 0, one);
  };
  EXPECT_TRUE(of_stream(options(), stream) == of_arrays(options(), 0, one));
  DatasetWriter tokens(root_ / "tokens", options("tokens"));
  EXPECT_THROW(static_cast<void>(tokens.append_cut(*from, 0, 10, {1, true}, false)), Error);
}

TEST_F(AppendStreamTest, AFileThatIsAnotherNowIsCorruption) {
  const auto from = files({1000, 1000});
  const std::vector<std::uint64_t> one{2000};
  put(root_ / "f1.bin", std::string(1000, 'x'));
  DatasetWriter writer(root_ / "stream", options());
  testing::expect_error([&] { writer.append_stream(*from, 0, one); }, ErrorKind::Corruption, "f1.bin: 1,000 bytes");
  std::filesystem::remove(root_ / "f0.bin");
  DatasetWriter other(root_ / "other", options());
  testing::expect_error([&] { other.append_stream(*from, 0, one); }, ErrorKind::NotFound, "f0.bin: cannot be opened");
}

}  // namespace
}  // namespace penstock::writer
