#include "writer/shuffle/shuffled_shards.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "layout/dataset/folder.h"
#include "writer/folder/commit.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace penstock::writer {
namespace {

using layout::ShardInfo;

// Where the shard ends, if it is of this task and begins at `first`.
std::optional<std::uint64_t> end_of(const ShardInfo& info, const std::string& task_json, std::uint64_t first) {
  const nlohmann::json task = nlohmann::json::parse(info.task_json);
  if (!task.is_object() || !task.contains("end") || !task["end"].is_number_unsigned()) return std::nullopt;
  const auto end = task["end"].get<std::uint64_t>();
  if (end <= first || info.task_json != shuffled_shard_task(task_json, first, end)) return std::nullopt;
  return end;
}

}  // namespace

std::string shuffled_shard_task(const std::string& identity, std::uint64_t first, std::uint64_t end) {
  nlohmann::json task = nlohmann::json::parse(identity);
  task["first"] = first;
  task["end"] = end;
  return layout::check_task(task.dump());
}

ShuffledShard::ShuffledShard(DatasetFolder& folder, std::uint64_t number, const layout::Format& format,
                             const ShuffledValues& values)
    : format_(format), values_(values), writer_(folder, number, format, "null", values.first()) {}

void ShuffledShard::write(TakenItem& item) {
  if (format_.has_metadata()) {
    if (const auto entry = item.whole(kEntryPart)) {
      writer_.begin_span(*entry);
    } else {
      writer_.begin_span([&](const auto& put) { item.each(kEntryPart, 1, put); });
    }
  }
  if (format_.has_columns()) write_values(item);
  if (!format_.has_records()) return;
  if (const auto records = item.whole(kRecordsPart)) {
    writer_.write_records(*records);
  } else {
    item.each(kRecordsPart, format_.stored_record_bytes(), [&](TakenItem::Bytes part) { writer_.write_records(part); });
  }
}

void ShuffledShard::write_values(TakenItem& item) {
  std::optional<TakenItem::Bytes> values = item.whole(kValuesPart);
  if (!values) {
    held_.clear();
    item.each(kValuesPart, 1, [&](TakenItem::Bytes part) { held_.insert(held_.end(), part.begin(), part.end()); });
    values = held_;
  }
  writer_.add_values(values_.split(*values), 0, values_.names());
}

layout::ShardInfo ShuffledShard::finish(std::string task_json) {
  writer_.set_task(std::move(task_json));
  return writer_.finish();
}

ShuffledShards::ShuffledShards(DatasetFolder& folder, layout::Manifest manifest, const ShuffledValues& values,
                               std::string task_json, std::uint64_t shard_bytes, std::uint64_t end)
    : folder_(folder),
      manifest_(std::move(manifest)),
      values_(values),
      task_json_(std::move(task_json)),
      shard_bytes_(shard_bytes),
      end_(end) {
  manifest_.shards.clear();
}

void ShuffledShards::keep_finished() {
  LocalStore files;
  for (const std::uint64_t number : folder_.finished()) {
    auto [format, info] = layout::read_shard_manifest(files, folder_.path(), folder_.shard_name(number));
    check_sizes(folder_.path(), format, info);
    keep(number, std::move(info), folder_.path());
  }
}

void ShuffledShards::keep(const std::vector<std::string>& finished, const std::string& path) {
  for (std::uint64_t number = 0; number < finished.size(); ++number) {
    const std::string name = layout::shard_name(number);
    ShardInfo info = layout::parse_shard_manifest(finished[number], path + "/" + name).second;
    info.name = name;
    keep(number, std::move(info), path);
  }
}

void ShuffledShards::keep(std::uint64_t number, ShardInfo info, const std::string& path) {
  const std::optional<std::uint64_t> end = end_of(info, task_json_, next_);
  if (number != manifest_.shards.size() || !end) {
    raise(ErrorKind::InvalidArgument,
          "{}/{}: it was made of another input or with other options than this run's: give those, or begin anew with "
          "overwrite",
          path, info.name);
  }
  next_ = *end;
  manifest_.shards.push_back(std::move(info));
}

void ShuffledShards::write(TakenItem& item) {
  if (shard_ && item.destination() != last_ && shard_->bytes() >= shard_bytes_) finish_shard(item.destination());
  last_ = item.destination();
  if (!shard_) shard_.emplace(folder_, manifest_.shards.size(), manifest_.format, values_);
  shard_->write(item);
}

void ShuffledShards::finish_shard(std::uint64_t end) {
  manifest_.shards.push_back(shard_->finish(shuffled_shard_task(task_json_, next_, end)));
  shard_.reset();
  next_ = end;
  if (moving_) moving_(manifest_.shards.size() - 1);
}

void ShuffledShards::finish() {
  if (!shard_ && manifest_.shards.empty()) shard_.emplace(folder_, 0, manifest_.format, values_);
  if (shard_) finish_shard(end_);
}

std::string ShuffledShards::publish(std::optional<layout::FeaturesInfo> features) {
  manifest_.features = std::move(features);
  folder_.publish_manifest(manifest_);
  return layout::fingerprint_of(manifest_.format, manifest_.shards);
}

bool is_result_of(const std::string& path, const std::string& task_json, std::uint64_t end) {
  LocalStore files;
  std::uint64_t next = 0;
  for (const ShardInfo& listed : layout::read_manifest(files, path).shards) {
    const ShardInfo info = layout::read_shard_manifest(files, path, listed.name).second;
    const std::optional<std::uint64_t> its_end = end_of(info, task_json, next);
    if (!its_end) return false;
    next = *its_end;
  }
  return next == end;
}

}  // namespace penstock::writer
