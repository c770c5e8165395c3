#include "layout/dataset.h"

#include "core/base/checked.h"
#include "layout/values/dataset_columns.h"

#include <algorithm>
#include <span>

namespace penstock::layout {
namespace {

void check_stream(const Shard& shard, std::uint64_t record_bytes) {
  const std::uint64_t bytes = shard.stream.bytes;
  if (record_bytes == 0 || shard.arrays != nullptr || shard.table != nullptr) return;
  if (shard.stream_offset <= bytes && shard.records <= (bytes - shard.stream_offset) / record_bytes) return;
  const std::string path = shard.stream.path();
  const std::uint64_t needed = checked_mul(shard.records, record_bytes, path.c_str());
  raise(ErrorKind::Corruption, "{}: {} bytes, but {} records need {}", path, with_commas(bytes),
        with_commas(shard.records), with_commas(checked_add(needed, shard.stream_offset, path.c_str())));
}

}  // namespace

Dataset::~Dataset() {
  for (const auto& store : stores) store->forget(std::as_bytes(std::span(shards)));
}

void Dataset::add_store(const std::shared_ptr<ByteStore>& store) {
  if (std::find(stores.begin(), stores.end(), store) == stores.end()) stores.push_back(store);
}

// Shards are mostly of one size: the place that this says is right then, and costs one look instead of sixteen.
std::uint64_t Dataset::shard_of(const std::vector<std::uint64_t>& starts, std::uint64_t at) noexcept {
  const std::uint64_t shards = starts.size() - 1;
  const auto share = static_cast<double>(at) / static_cast<double>(starts.back());
  const auto guess = std::min(static_cast<std::uint64_t>(share * static_cast<double>(shards)), shards - 1);
  if (starts[guess] <= at && at < starts[guess + 1]) return guess;
  return static_cast<std::uint64_t>(std::upper_bound(starts.begin(), starts.end(), at) - starts.begin()) - 1;
}

void Dataset::finish() {
  const auto append = [this](std::vector<std::uint64_t>& sums, std::uint64_t value) {
    sums.push_back(checked_add(sums.back(), value, path.c_str()));
    if (sums.back() > INT64_MAX) raise(ErrorKind::Corruption, "{}: its counts do not fit 63 bits", path);
  };
  record_starts.assign(1, 0);
  span_starts.assign(1, 0);
  for (const Shard& shard : shards) {
    check_stream(shard, fields_apart ? schema.leaves().front().item_bytes : stored_record_bytes);
    append(record_starts, shard.records);
    append(span_starts, shard.spans);
  }
  column_table = columns.empty() ? nullptr : std::make_shared<const DatasetColumns>(path, columns, shards);
}

std::size_t Dataset::find_column(const std::string& name) const {
  const auto is_it = [&](const ValueType& type) { return type.name == name; };
  const auto found = std::find_if(columns.begin(), columns.end(), is_it);
  if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  std::string names;
  for (const ValueType& type : columns) names.append(names.empty() ? "" : ", ").append(excerpt(type.name));
  raise(ErrorKind::InvalidArgument, "{}: there is no column {}; {}", path, excerpt(name),
        names.empty() ? std::string("it has none: `penstock annotate` adds columns") : "its columns are " + names);
}

SourceInfo info_of(const Dataset& dataset, std::uint64_t size) {
  SourceInfo info;
  info.identity.fingerprint = dataset.fingerprint;
  info.identity.shards = dataset.shards.size();
  info.identity.records = dataset.stored_record_bytes == 0 ? dataset.span_count() : dataset.record_count();
  info.schema = dataset.schema;
  std::uint64_t entry_bytes = 0;
  for (const Shard& shard : dataset.shards) entry_bytes += shard.data.bytes;
  info.path = dataset.path;
  info.size = size;
  info.mean_length = info.identity.records / size;
  info.mean_entry_bytes = entry_bytes / size;
  info.stored_record_bytes = dataset.stored_record_bytes;
  info.fields_apart = dataset.fields_apart;
  return info;
}

}  // namespace penstock::layout
