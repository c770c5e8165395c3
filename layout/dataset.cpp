#include "layout/dataset.h"

#include "core/base/checked.h"

#include <algorithm>
#include <span>

namespace penstock::layout {
namespace {

void check_stream(const Shard& shard, std::uint64_t record_bytes) {
  const char* path = shard.stream.path.c_str();
  const std::uint64_t end = checked_add(checked_mul(shard.records, record_bytes, path), shard.stream_offset, path);
  if (record_bytes == 0 || end <= shard.stream.bytes) return;
  raise(ErrorKind::Corruption, "{}: {} bytes, but {} records need {}", shard.stream.path,
        with_commas(shard.stream.bytes), with_commas(shard.records), with_commas(end));
}

}  // namespace

Dataset::~Dataset() {
  for (const auto& store : stores) store->forget(std::as_bytes(std::span(shards)));
}

void Dataset::add_store(const std::shared_ptr<ByteStore>& store) {
  if (std::find(stores.begin(), stores.end(), store) == stores.end()) stores.push_back(store);
}

void Dataset::finish() {
  const auto append = [this](std::vector<std::uint64_t>& sums, std::uint64_t value) {
    sums.push_back(checked_add(sums.back(), value, path.c_str()));
    if (sums.back() > INT64_MAX) raise(ErrorKind::Corruption, "{}: its counts do not fit 63 bits", path);
  };
  record_starts.assign(1, 0);
  span_starts.assign(1, 0);
  for (const Shard& shard : shards) {
    check_stream(shard, stored_record_bytes);
    append(record_starts, shard.records);
    append(span_starts, shard.spans);
  }
}

SourceInfo info_of(const Dataset& dataset) {
  SourceInfo info;
  info.identity.fingerprint = dataset.fingerprint;
  info.identity.shards = dataset.shards.size();
  info.identity.records = dataset.stored_record_bytes == 0 ? dataset.span_count() : dataset.record_count();
  info.schema = dataset.schema;
  info.stored_record_bytes = dataset.stored_record_bytes;
  return info;
}

}  // namespace penstock::layout
