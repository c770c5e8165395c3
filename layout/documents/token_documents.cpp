#include "layout/documents/token_documents.h"

#include "core/base/error.h"
#include "core/rows/field_place.h"
#include "layout/dataset/format.h"
#include "layout/documents/documents.h"
#include "layout/reading/block_reader.h"
#include "layout/reading/side_files.h"

#include <algorithm>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kReadBytes = 1U << 20;

const Leaf& find_tokens(const Dataset& dataset, const std::string& field) {
  for (const Leaf& leaf : dataset.schema.leaves()) {
    if (leaf.name == field && leaf.is_integer() && leaf.dims.empty()) return leaf;
  }
  raise(ErrorKind::InvalidArgument, "{}: no field {} of single integers", dataset.path, field);
}

}  // namespace

TokenDocuments::TokenDocuments(DatasetPtr dataset, TokenRule rule, StoreChoice through)
    : base_(std::move(dataset)),
      rule_(std::move(rule)),
      through_(std::move(through)),
      made_(std::make_shared<Dataset>(*base_)) {
  const char* const name = rule_.ends ? "end_of_document" : "begin_of_document";
  if (base_->spans != SpanKind::None) {
    raise(ErrorKind::InvalidArgument, "{}: it says itself where documents are: leave {} out", base_->path, name);
  }
  const Leaf& leaf = find_tokens(*base_, rule_.field);
  item_bytes_ = leaf.item_bytes;
  stride_bytes_ = base_->fields_apart ? item_bytes_ : base_->stored_record_bytes;
  offset_bytes_ = base_->fields_apart ? 0 : leaf.offset_bytes;
  made_->spans = SpanKind::Bounds;
  made_->mode = kModeStream;
  made_->token_rule = fmt::format(R"("{}":{},)", name, rule_.token);
  digest_.update(fmt::format("penstock documents by a token\n{}\n{}\n", base_->fingerprint, made_->token_rule));
  begin_shard();
}

TokenDocuments::~TokenDocuments() = default;

bool TokenDocuments::step(std::uint64_t records) {
  const std::uint64_t most = std::max<std::uint64_t>(kReadBytes / stride_bytes_, 1);
  while (records > 0 && shard_ < base_->shards.size()) {
    const Shard& shard = base_->shards[shard_];
    const std::uint64_t count = std::min({records, most, shard.records - at_});
    if (count == 0) {
      end_shard();
      continue;
    }
    look(reader_->read(shard.stream_offset + at_ * stride_bytes_, count * stride_bytes_), count);
    records -= count;
  }
  return shard_ < base_->shards.size();
}

void TokenDocuments::begin_shard() {
  at_ = begin_ = 0;
  if (shard_ == base_->shards.size()) return;
  table_ = std::make_shared<DocumentTable>(false);
  const Shard& shard = base_->shards[shard_];
  const bool compares = shard.checks != Checks::None;
  reader_ = std::make_unique<BlockReader>(
      shard.stream, compares ? shard.stream.beside(kStreamCrcName, crc_bytes(shard.stream.bytes)) : File(), through_);
}

void TokenDocuments::look(std::span<const std::byte> records, std::uint64_t count) {
  const std::byte* const first = records.data() + offset_bytes_;
  const std::uint64_t behind = rule_.ends ? 1 : 0;
  const std::uint64_t before = base_->record_starts[shard_] + at_;
  const std::uint64_t other_side = rule_.ends ? 0 : base_->shards[shard_].records - 1;
  with_unsigned(item_bytes_, [&](auto zero) {
    const auto wanted = static_cast<decltype(zero)>(rule_.token);
    last_has_ = false;
    for_each_equal(first, stride_bytes_, count, wanted, [&](std::uint64_t i) {
      ++found_;
      if (before + i == 0) first_has_ = true;
      last_has_ = i + 1 == count;
      if (at_ + i == other_side) doubtful_.push_back(shard_);
      cut(at_ + i + behind);
    });
  });
  at_ += count;
}

void TokenDocuments::cut(std::uint64_t at) {
  if (at == begin_) return;  // the first document begins with the shard
  table_->add(at - begin_);
  digest_.update_u64(at - begin_);
  begin_ = at;
}

void TokenDocuments::end_shard() {
  cut(base_->shards[shard_].records);
  table_->finish();
  digest_.update_u64(0);
  made_->shards[shard_].spans = table_->documents();
  made_->shards[shard_].table = std::move(table_);
  ++shard_;
  begin_shard();
}

DatasetPtr TokenDocuments::dataset() const {
  auto result = std::make_shared<Dataset>(*made_);
  result->fingerprint = digest_.hex();
  result->finish();
  return result;
}

}  // namespace penstock::layout
