#include "writer/shuffle/shuffle_tasks.h"

#include "core/base/error.h"
#include "writer/shuffle/shuffle_input.h"
#include "writer/shuffle/shuffled_shards.h"

#include <optional>

namespace penstock::writer {
namespace {

void check_identity(const ShuffleInput& input, const std::string& identity) {
  if (input.task_json() == identity) return;
  raise(ErrorKind::Corruption, "{}: it is not the dataset any more of which the shuffle was planned: begin anew",
        input.path());
}

}  // namespace

ShuffleTasks plan_shuffle_tasks(const std::string& path, const ShuffleOptions& options,
                                const MakeDestinations& destinations, const TellProgress& progress) {
  check_shard_bytes(options);
  const ShuffleInput input(path, options, destinations);
  Progress passed(progress);
  ShuffleTasks planned{.identity = input.task_json(),
                       .tasks = {},
                       .cuts = cut_shuffle(input, options.memory_bytes, options.shard_bytes, passed),
                       .input_bytes = {}};
  for (const ShuffleCuts::Shard& each : planned.cuts.shards) {
    planned.tasks.push_back(shuffled_shard_task(planned.identity, each.range.begin, each.range.end));
  }
  for (std::size_t shard = 0; shard < input.manifest().shards.size(); ++shard) {
    planned.input_bytes.push_back(input.bytes_of_shard(shard));
  }
  return planned;
}

void put_shuffle_aside(const ShuffleWork& work, std::size_t begin, std::size_t end, const std::string& file,
                       bool is_synced, const TellProgress& progress) {
  ShuffleInput input(work.path, work.options, work.destinations);
  check_identity(input, work.identity);
  Progress passed(progress);
  AsidePlanner planner(work.buckets, work.options.memory_bytes);
  input.each_piece(begin, end, passed, [&](const Piece& piece, std::uint64_t destination) {
    planner.add(destination, input.bytes_of(piece));
  });
  const auto is_wanted = [&](std::uint64_t destination) {
    return bucket_of(work.buckets, destination) != work.buckets.size();
  };
  write_aside(file, planner.plan(), is_synced,
              [&](Buckets& buckets) { input.put_aside(begin, end, buckets, is_wanted, passed); });
}

void make_shuffled_shards(const ShuffleWork& work, const ShuffledShardsTask& task, DatasetFolder& out,
                          const TellProgress& progress) {
  const ShuffleInput input(work.path, work.options, work.destinations);
  check_identity(input, work.identity);
  Progress passed(progress);
  std::optional<ShuffledShard> shard;
  auto next = task.shards.begin();
  const auto begin_shard = [&] { shard.emplace(out, next->number, input.manifest().format, input.values()); };
  const auto end_shard = [&] {
    if (!shard) begin_shard();
    shard->finish(next->task_json);
    shard.reset();
    ++next;
  };
  const AsideFiles files(task.files);
  for (std::size_t bucket = task.first_bucket; bucket < task.end_bucket; ++bucket) {
    files.take(bucket, work.buckets[bucket], passed, [&](TakenItem& item) {
      while (next != task.shards.end() && item.destination() >= next->range.end) end_shard();
      if (next == task.shards.end() || item.destination() < next->range.begin) return;  // of a shard that is there
      if (!shard) begin_shard();
      shard->write(item);
    });
  }
  while (next != task.shards.end()) end_shard();
}

}  // namespace penstock::writer
