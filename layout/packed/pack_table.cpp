#include "layout/packed/pack_table.h"

#include "core/base/align.h"
#include "core/base/checked.h"
#include "core/base/crc32c.h"
#include "core/base/json.h"
#include "layout/dataset/format.h"
#include "layout/dataset/sealed_json.h"
#include "layout/documents/document_lengths.h"
#include "layout/reading/reads.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>
#include <vector>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kBlock = kCrcBlockBytes;

// A part of the file that begins at `begin` and has `count` values of 8 bytes: where the next one begins.
std::uint64_t after(std::uint64_t begin, std::uint64_t count) {
  const char* const what = "a pack table";
  const std::uint64_t bytes = checked_mul(count, 8, what);
  return checked_add(begin, checked_add(bytes, kBlock - 1, what) / kBlock * kBlock, what);
}

// A range of the file on its way, whole blocks with their check values.
struct CheckedRange {
  const std::byte* blocks = nullptr;
  const std::byte* values = nullptr;
  std::uint64_t begin = 0;  // of the blocks
  std::uint64_t bytes = 0;
  std::uint64_t wanted = 0;
};

struct Reading {
  CheckedRange ends;
  CheckedRange pieces;
  std::uint64_t count = 0;
};

CheckedRange plan_range(Row& row, const File& file, const PackHeader& header, std::uint64_t offset, std::uint64_t size,
                        Reads& out) {
  CheckedRange range;
  range.wanted = offset;
  range.begin = offset / kBlock * kBlock;
  range.bytes = align_up(offset + size, kBlock) - range.begin;
  range.blocks = plan_read(row, file, range.begin, range.bytes, out);
  const std::uint64_t first = (range.begin - kPackHeaderBytes) / kBlock;
  range.values = plan_read(row, file, header.checks_at() + 4 * first, range.bytes / kBlock * 4, out);
  return range;
}

const std::byte* check_range(const CheckedRange& range, const File& file) {
  for (std::uint64_t i = 0; i < range.bytes / kBlock; ++i) {
    const std::uint32_t seen = crc32c({range.blocks + i * kBlock, kBlock});
    if (seen == load_at<std::uint32_t>(range.values, i)) continue;
    raise(ErrorKind::Corruption, "{}: bytes {} to {} are not those that were written: make the table again",
          file.path(), with_commas(range.begin + i * kBlock), with_commas(range.begin + (i + 1) * kBlock));
  }
  return range.blocks + (range.wanted - range.begin);
}

std::string read_text(const Location& location, std::uint64_t at, std::uint64_t bytes) {
  std::string text(bytes, '\0');
  location.store->read_small(location.path, at, std::as_writable_bytes(std::span(text)));
  return text;
}

PackHeader read_header(const Location& location, const Dataset& dataset) {
  const std::uint64_t bytes = location.store->size(location.path, Links::Follow);
  const std::string text = read_text(location, 0, std::min(bytes, kPackHeaderBytes));
  PackHeader header = parse_pack_header(text, location.path);
  if (header.fingerprint != dataset.fingerprint || header.documents != dataset.span_count()) {
    raise(ErrorKind::InvalidArgument,
          "{}: this table is of a dataset with fingerprint {} and {} documents; {} has {} and {}: make another one by "
          "`penstock pack`",
          location.path, excerpt(header.fingerprint), with_commas(header.documents), dataset.path, dataset.fingerprint,
          with_commas(dataset.span_count()));
  }
  if (bytes != header.file_bytes()) {
    raise(ErrorKind::Corruption, "{}: {} bytes, its header wants {}", location.path, with_commas(bytes),
          with_commas(header.file_bytes()));
  }
  if (header.where_bytes > 0) {
    const std::string where = read_text(location, header.where_at(), header.where_bytes);
    check_seal(where, location.path);
    header.where = get_object(parse_json_strict(where, location.path, where.size()), "where", location.path).dump();
  }
  return header;
}

/// True for a rule that version 1 has members for.
bool is_plain(const PackingRule& rule) {
  return rule.max_document == 0 && rule.max_documents == 0 && rule.fill == Fill::Pad;
}

std::variant<Packer, ExactPacker> make_packer(const PackingRule& rule) {
  if (rule.fill == Fill::Exact) return ExactPacker(rule);
  return Packer(rule);
}

PackingRule parse_rule(const nlohmann::json& root, std::uint64_t version, const std::string& what) {
  PackingRule rule{get_u64(root, "window", what), parse_fit(get_string(root, "fit", what)),
                   get_u64(root, "group", what), parse_long(get_string(root, "long", what)),
                   get_u64(root, "multiple_of", what)};
  if (version > kPackVersionPlain) {
    rule.max_document = get_u64(root, "max_document", what);
    rule.max_documents = get_u64(root, "max_documents", what);
    rule.fill = parse_fill(get_string(root, "fill", what));
    rule.buffer = get_u64(root, "buffer", what);
    rule.refill = get_u64(root, "refill", what);
  }
  check_packing_rule(rule);
  return rule;
}

}  // namespace

std::uint64_t PackHeader::ends_at() const {
  return after(kPackHeaderBytes, pieces);
}

std::uint64_t PackHeader::checks_at() const {
  return after(ends_at(), rows);
}

std::uint64_t PackHeader::where_at() const {
  const std::uint64_t end = checks_at();
  return checked_add(end, (end - kPackHeaderBytes) / kBlock * 4, "a pack table");
}

std::uint64_t PackHeader::file_bytes() const {
  return checked_add(where_at(), where_bytes, "a pack table");
}

namespace {

std::string header_text(const PackHeader& header) {
  const PackingRule& rule = header.rule;
  const bool plain = is_plain(rule) && header.where.empty();
  std::string where;
  if (header.where_bytes > 0) {
    where = fmt::format("\n  \"where_bytes\": {},", header.where_bytes);
  } else if (!header.where.empty()) {
    where = fmt::format("\n  \"where\": {},", header.where);
  }
  const std::uint64_t version = header.where_bytes > 0 ? kPackVersionLong : plain ? kPackVersionPlain : kPackVersion;
  std::string more;
  if (!plain) {
    more = fmt::format(
        "\n  \"max_document\": {},\n  \"max_documents\": {},\n  \"fill\": \"{}\",\n  \"buffer\": {},\n"
        "  \"refill\": {},",
        rule.max_document, rule.max_documents, fill_name(rule.fill), rule.buffer, rule.refill);
  }
  return seal_json(fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"version\": {},\n  \"fingerprint\": \"{}\",\n  \"documents\": {},\n"
      "  \"window\": {},\n  \"fit\": \"{}\",\n  \"group\": {},\n  \"long\": \"{}\",\n  \"multiple_of\": {},{}\n"
      "  \"rows\": {},\n  \"pieces\": {},\n  \"records\": {},\n  \"left_out\": {},\n  \"cut\": {},{}",
      kPackFormatName, version, header.fingerprint, header.documents, rule.window, fit_name(rule.fit), rule.group,
      long_name(rule.long_documents), rule.multiple_of, more, header.rows, header.pieces, header.records,
      header.left_out, header.cut, where));
}

}  // namespace

std::string write_pack_where(const PackHeader& header) {
  if (header.where.size() > kMostPackWhereBytes) {
    raise(ErrorKind::InvalidArgument,
          "a condition of {} bytes: a pack table has room for {}: write which documents are wanted to a column by "
          "`penstock annotate`, and give a condition on that",
          with_commas(header.where.size()), with_commas(kMostPackWhereBytes));
  }
  PackHeader most = header;
  most.rows = most.pieces = most.records = most.left_out = most.cut = UINT64_MAX;
  most.where_bytes = 0;
  if (header_text(most).size() <= kPackHeaderBytes) return "";
  return seal_json(fmt::format("{{\n  \"where\": {},", header.where));
}

std::string write_pack_header(const PackHeader& header) {
  std::string text = header_text(header);
  assert(text.size() <= kPackHeaderBytes);
  text.resize(kPackHeaderBytes, '\0');
  return text;
}

void check_has_rows(const PackHeader& header, const std::string& path) {
  if (header.rows > 0) return;
  raise(ErrorKind::InvalidArgument, "{}: none of its {} documents{} has records to pack into rows of {}{}", path,
        with_commas(header.documents), header.where.empty() ? "" : " that the condition chooses",
        with_commas(header.rule.window),
        header.rule.fill == Fill::Exact ? ", or those of a shard do not fill one" : "");
}

PackHeader parse_pack_header(std::string_view bytes, const std::string& what) {
  const std::string_view text = bytes.substr(0, bytes.find('\0'));
  check_seal(text, what);
  const nlohmann::json root = parse_json_strict(text, what, kPackHeaderBytes);
  if (get_string(root, "format", what) != kPackFormatName) {
    raise(ErrorKind::Corruption, "{}: it is no pack table", what);
  }
  const std::uint64_t version = get_u64(root, "version", what);
  if (version < kPackVersionPlain || version > kPackVersionLong) {
    raise(ErrorKind::InvalidArgument, "{}: a pack table of version {}: this penstock knows {} to {}; make it again",
          what, version, kPackVersionPlain, kPackVersionLong);
  }
  PackHeader header;
  try {
    header.rule = parse_rule(root, version, what);
  } catch (const Error& error) {
    raise(ErrorKind::Corruption, "{}: {}", what, error.what());
  }
  header.fingerprint = get_string(root, "fingerprint", what);
  header.documents = get_u64(root, "documents", what);
  header.rows = get_u64(root, "rows", what);
  header.pieces = get_u64(root, "pieces", what);
  header.records = get_u64(root, "records", what);
  header.left_out = get_u64(root, "left_out", what);
  header.cut = get_u64(root, "cut", what);
  if (version != kPackVersionPlain && find_member(root, "where", what) != nullptr) {
    header.where = get_object(root, "where", what).dump();
  }
  if (version == kPackVersionLong) {
    header.where_bytes = get_u64(root, "where_bytes", what);
    if (header.where_bytes > kMostPackWhereBytes + kBlock) {
      raise(ErrorKind::Corruption, "{}: a condition of {} bytes", what, with_commas(header.where_bytes));
    }
  }
  return header;
}

PackTable::PackTable(const PackHeader& header, PackedRows rows) : header_(header), rows_(std::move(rows)) {}

PackTable::PackTable(const Location& location, const Dataset& dataset)
    : header_(read_header(location, dataset)),
      store_(location.store),
      file_(File(location.path, header_.file_bytes(), location.store.get())) {}

PackTable::~PackTable() {
  if (file_) store_->forget(std::as_bytes(std::span(&*file_, 1)));
}

bool PackTable::plan(Row& row, std::uint64_t number, unsigned round, Pieces& pieces, Reads& out) const {
  if (!file_) {
    const std::uint64_t begin = number == 0 ? 0 : rows_.row_ends[number - 1];
    pieces.pieces = std::span(rows_.pieces).subspan(begin, rows_.row_ends[number] - begin);
    return false;
  }
  if (round == 0) {
    auto* const reading = row.arena.make<Reading>();
    pieces.reading = reading;
    const std::uint64_t first = number == 0 ? 0 : number - 1;
    reading->ends = plan_range(row, *file_, header_, header_.ends_at() + 8 * first, 8 * (number + 1 - first), out);
    return true;
  }
  Reading& reading = *static_cast<Reading*>(pieces.reading);
  if (round == 1) {
    const std::byte* const ends = check_range(reading.ends, *file_);
    const std::uint64_t begin = number == 0 ? 0 : load_at<std::uint64_t>(ends, 0);
    const auto end = load_at<std::uint64_t>(ends, number == 0 ? 0 : 1);
    // Each piece has a record at least.
    if (end < begin || end > header_.pieces || end - begin > header_.rule.window) {
      raise(ErrorKind::Corruption, "{}: row {} has pieces {} to {} of {}", file_->path(), with_commas(number),
            with_commas(begin), with_commas(end), with_commas(header_.pieces));
    }
    reading.count = end - begin;
    if (reading.count > 0) {
      reading.pieces = plan_range(row, *file_, header_, kPackHeaderBytes + 8 * begin, 8 * reading.count, out);
    }
    return true;
  }
  auto* const known = row.arena.make_array<PackedPiece>(reading.count);
  if (reading.count > 0) std::memcpy(known, check_range(reading.pieces, *file_), 8 * reading.count);
  pieces.pieces = {known, reading.count};
  return false;
}

DatasetPacker::DatasetPacker(DatasetPtr dataset, const PackingRule& rule, StoreChoice through,
                             std::shared_ptr<const Chosen> chosen, std::string where)
    : dataset_(std::move(dataset)),
      rule_(rule),
      through_(std::move(through)),
      chosen_(std::move(chosen)),
      where_(std::move(where)),
      packer_(make_packer(rule)) {
  check_has_lengths(*dataset_);
  if (chosen_ != nullptr && chosen_->size() != dataset_->span_count()) {
    raise(ErrorKind::InvalidArgument, "{}: a choice among {} documents, it has {}", dataset_->path,
          with_commas(chosen_->size()), with_commas(dataset_->span_count()));
  }
  if (dataset_->spans == SpanKind::Arrays) {
    raise(ErrorKind::InvalidArgument,
          "{}: its fields are arrays beside each other, which are no records to pack: `penstock import` it",
          dataset_->path);
  }
}

bool DatasetPacker::step(std::uint64_t documents) {
  const std::vector<std::uint64_t>& starts = dataset_->span_starts;
  if (next_ == starts.back()) return false;
  if (chosen_ != nullptr) return step_chosen(documents);
  const std::uint64_t left = starts[Dataset::shard_of(starts, next_) + 1] - next_;  // groups do not cross shards
  const std::uint64_t group = rule_.fill == Fill::Exact ? 1 : rule_.group;
  const std::uint64_t groups = std::max<std::uint64_t>(1, documents / group);
  std::vector<std::uint64_t> lengths(std::min(left, groups * group));
  read_document_lengths(*dataset_, next_, lengths, through_);
  std::visit([&](auto& packer) { packer.add(next_, lengths, rows_); }, packer_);
  if (auto* const exact = std::get_if<ExactPacker>(&packer_); exact != nullptr && lengths.size() == left) {
    exact->end_shard(rows_);
  }
  next_ += lengths.size();
  return next_ < starts.back();
}

// Chosen documents are packed as if the shard had no others.
bool DatasetPacker::step_chosen(std::uint64_t documents) {
  const std::vector<std::uint64_t>& starts = dataset_->span_starts;
  const std::uint64_t end = starts[Dataset::shard_of(starts, next_) + 1];
  const std::uint64_t stop = documents > end - next_ ? end : next_ + std::max<std::uint64_t>(1, documents);
  if (chosen_->before(stop) > chosen_->before(next_)) {
    std::vector<std::uint64_t> lengths(stop - next_);
    read_document_lengths(*dataset_, next_, lengths, through_);
    for (std::uint64_t i = 0; i < lengths.size(); ++i) {
      if (chosen_->has(next_ + i)) waiting_.push_back(lengths[i]);
    }
  }
  next_ = stop;
  const std::uint64_t group = rule_.fill == Fill::Exact ? 1 : rule_.group;
  pack_waiting(next_ == end ? waiting_.size() : waiting_.size() / group * group, next_ == end);
  return next_ < starts.back();
}

// The packer counts chosen documents; pieces are of the dataset's.
void DatasetPacker::pack_waiting(std::size_t documents, bool ends_shard) {
  const std::size_t before = rows_.pieces.size();
  try {
    const auto lengths = std::span(waiting_).first(documents);
    std::visit([&](auto& packer) { packer.add(packed_, lengths, rows_); }, packer_);
    if (auto* const exact = std::get_if<ExactPacker>(&packer_); exact != nullptr && ends_shard) exact->end_shard(rows_);
  } catch (const Error& error) {
    raise(error.kind(), "{} (its number is among the documents that the condition chose)", error.what());
  }
  for (std::size_t i = before; i < rows_.pieces.size(); ++i) {
    PackedPiece& piece = rows_.pieces[i];
    piece = PackedPiece::of(chosen_->at(piece.document()), piece.part());
  }
  packed_ += documents;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(documents));
}

PackHeader DatasetPacker::header() const {
  return {rule_,
          dataset_->fingerprint,
          dataset_->span_count(),
          rows_.row_ends.size(),
          rows_.pieces.size(),
          rows_.records,
          rows_.left_out,
          rows_.cut,
          where_,
          0};
}

}  // namespace penstock::layout
