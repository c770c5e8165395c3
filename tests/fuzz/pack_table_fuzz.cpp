// Any bytes as a pack table: its header's JSON up to a zero, which is sealed here; its pieces and the ends of its rows,
// whose check values are made right here. A `@` in the header stands for the dataset's fingerprint. What is read of a
// row is its pieces.
#include "core/base/crc32c.h"
#include "layout/dataset/sealed_json.h"
#include "layout/packed/packed.h"
#include "layout/reading/reads.h"
#include "tests/fuzz/golden_dataset.h"

#include <algorithm>

namespace penstock::fuzz {
namespace {

constexpr std::uint64_t kMostTableBytes = 1 << 16;
constexpr const char* kTable = "table";

std::string with_fingerprint(std::string text, const std::string& fingerprint) {
  for (std::size_t at = 0; (at = text.find('@', at)) != std::string::npos; at += fingerprint.size()) {
    text.replace(at, 1, fingerprint);
  }
  return text;
}

// `count` bytes of the input at `at`, as far as there are.
void place(std::string& table, std::uint64_t at, std::uint64_t count, Input& input) {
  const std::uint64_t there = std::min<std::uint64_t>(count, input.size());
  table.replace(at, there, view_of(input.first(there)));
  input = input.subspan(there);
}

std::string make_table(const std::string& body, const std::string& fingerprint, Input rest) {
  std::string table = layout::seal_json(with_fingerprint(body, fingerprint));
  table.resize(layout::kPackHeaderBytes, '\0');
  const layout::PackHeader header = layout::parse_pack_header(table, "the header");
  const std::uint64_t ends_at = header.ends_at();
  const std::uint64_t checks_at = header.checks_at();
  if (header.file_bytes() > kMostTableBytes) return table;
  table.resize(header.file_bytes(), '\0');
  place(table, layout::kPackHeaderBytes, 8 * header.pieces, rest);
  place(table, ends_at, 8 * header.rows, rest);
  std::vector<std::uint32_t> sums;
  const auto bytes = std::as_bytes(std::span(table));
  crc32c_blocks(bytes.subspan(layout::kPackHeaderBytes, checks_at - layout::kPackHeaderBytes), 4096, sums);
  const std::string_view checks(reinterpret_cast<const char*>(sums.data()), 4 * sums.size());
  table.replace(checks_at, checks.size(), checks);
  return table;
}

// The row has the pieces between its ends, as the table's bytes have them.
void judge_row(const std::string& table, const layout::Dataset& dataset, std::uint64_t row, const SpanTable& spans) {
  const layout::PackHeader header = layout::parse_pack_header(table.substr(0, layout::kPackHeaderBytes), "the header");
  const auto* const bytes = reinterpret_cast<const std::byte*>(table.data());
  const std::byte* const ends = bytes + header.ends_at();
  const auto begin = row == 0 ? 0 : layout::load_at<std::uint64_t>(ends, row - 1);
  const auto end = layout::load_at<std::uint64_t>(ends, row);
  require(begin <= end && end <= header.pieces, "a row of pieces that are none of its table");
  require(spans.size() == end - begin, "a row of another number of pieces");
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const layout::PackedPiece piece{layout::load_at<std::uint64_t>(bytes + layout::kPackHeaderBytes, begin + i)};
    require(dataset.span_starts[spans[i].shard] + spans[i].entry == piece.document(), "a piece of another document");
  }
}

}  // namespace

bool pack_table(Input input) {
  static const GoldenDataset golden("dataset-v1/compact");
  const layout::DatasetPtr& dataset = golden.dataset();
  const auto parts = split_at_zero(input);
  bool some = false;
  accepts([&] {
    const auto store = std::make_shared<testing::MemoryStore>();
    const std::string bytes = make_table(parts.first, dataset->fingerprint, parts.second);
    put(*store, kTable, bytes);
    const auto table = std::make_shared<const layout::PackTable>(Location{store, kTable}, *dataset);
    for (const std::uint64_t lookahead : {0, 1}) {
      accepts([&] {
        some |= read_some(*layout::make_packed(dataset, table, {}, lookahead), input.size(),
                          [&](std::uint64_t row, const SpanTable& spans) { judge_row(bytes, *dataset, row, spans); });
      });
    }
  });
  return some;
}

}  // namespace penstock::fuzz
