// ShuffledShards: the shards of a shuffle's result: which are finished already, and writing the others in order.
//
// A shard's task says the input, the order and the observations in it, so that a run that was stopped is gone on with.
// One thread at a time.
#pragma once

#include "layout/dataset/manifest.h"
#include "writer/folder/dataset_folder.h"
#include "writer/shards/shard_writer.h"
#include "writer/shuffle/shuffled_values.h"
#include "writer/shuffle/taken_items.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock::writer {

/// What shard.json says of a shard with the destinations [first, end), of the shuffle that `identity` tells from
/// others.
std::string shuffled_shard_task(const std::string& identity, std::uint64_t first, std::uint64_t end);

/// One shard while its items are written.
class ShuffledShard {
 public:
  /// `folder` and `values` outlive this.
  ShuffledShard(DatasetFolder& folder, std::uint64_t number, const layout::Format& format,
                const ShuffledValues& values);

  /// The next item.
  void write(TakenItem& item);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return writer_.bytes(); }
  /// Completes it, with this task.
  layout::ShardInfo finish(std::string task_json);

 private:
  void write_values(TakenItem& item);

  const layout::Format format_;
  const ShuffledValues& values_;
  ShardWriter writer_;
  std::vector<std::byte> held_;  // values of a large item
};

class ShuffledShards {
 public:
  /// Of `end` destinations in all. `manifest` has format and tokenizer of the result and no shards yet; `task_json` is
  /// an object that says what is shuffled and how.
  /// `values`, which outlives this, knows the columns.
  ShuffledShards(DatasetFolder& folder, layout::Manifest manifest, const ShuffledValues& values, std::string task_json,
                 std::uint64_t shard_bytes, std::uint64_t end);

  /// Takes in the finished shards that are there. Throws InvalidArgument for one of another task.
  void keep_finished();

  /// The same of those that are elsewhere, at `path`: texts of their shard.json, from 0 on. Throws Corruption too.
  void keep(const std::vector<std::string>& finished, const std::string& path);

  /// Called with the number of each shard that is whole.
  void tell(std::function<void(std::uint64_t)> moving) { moving_ = std::move(moving); }

  /// The first destination that is not written, and whether all are.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] bool is_whole() const noexcept { return next_ == end_ && !manifest_.shards.empty(); }

  /// The next item; ends a shard where one is full, never within a destination.
  void write(TakenItem& item);

  /// Ends the last shard, if one is under way or there is none at all.
  void finish();

  /// Publishes all of them, with the features that are in the folder, and returns the fingerprint.
  std::string publish(std::optional<layout::FeaturesInfo> features);

  /// Removes the shard under way; finished ones stay.
  void drop() noexcept { shard_.reset(); }
  [[nodiscard]] bool has_finished() const noexcept { return !manifest_.shards.empty(); }

 private:
  void keep(std::uint64_t number, layout::ShardInfo info, const std::string& path);
  void finish_shard(std::uint64_t end);

  DatasetFolder& folder_;
  layout::Manifest manifest_;
  const ShuffledValues& values_;
  const std::string task_json_;
  const std::uint64_t shard_bytes_;
  const std::uint64_t end_;
  std::uint64_t next_ = 0;  // first destination of the shard under way
  std::uint64_t last_ = 0;  // destination of the last item
  std::optional<ShuffledShard> shard_;
  std::function<void(std::uint64_t)> moving_;
};

/// Whether the dataset that is published at `path` was made by this task, whole. Throws Corruption, NotFound, IoError.
bool is_result_of(const std::string& path, const std::string& task_json, std::uint64_t end);

}  // namespace penstock::writer
