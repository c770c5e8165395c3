#include "writer/shuffle/shuffle.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "writer/derived/combine.h"
#include "writer/folder/dataset_folder.h"
#include "writer/shuffle/buckets.h"
#include "writer/shuffle/shuffle_input.h"
#include "writer/shuffle/shuffled_shards.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::writer {
namespace {

using layout::Manifest;

class Shuffler {
 public:
  Shuffler(const std::string& path, const ShuffleOptions& options, const MakeDestinations& destinations,
           const TellProgress& tell)
      : options_(options), input_(path, options, destinations), progress_(tell) {}

  std::string run(const std::string& out);

 private:
  std::optional<layout::FeaturesInfo> copy_features_to(DatasetFolder& out) const;
  BucketPlan plan(std::uint64_t first);
  void write(ShuffledShards& shards, const std::string& scratch);

  const ShuffleOptions& options_;
  ShuffleInput input_;
  Progress progress_;
};

std::optional<layout::FeaturesInfo> Shuffler::copy_features_to(DatasetFolder& out) const {
  const Manifest& manifest = input_.manifest();
  if (!manifest.features) return std::nullopt;
  return copy_features(input_.path(), *manifest.features, out);
}

BucketPlan Shuffler::plan(std::uint64_t first) {
  BucketPlanner planner(first, input_.end(), options_.memory_bytes);
  input_.each_piece(0, input_.manifest().shards.size(), progress_, [&](const Piece& piece, std::uint64_t destination) {
    if (destination >= first) planner.add(destination, input_.bytes_of(piece));
  });
  return planner.plan();
}

void Shuffler::write(ShuffledShards& shards, const std::string& scratch) {
  if (shards.is_whole()) return;
  const std::size_t count = input_.manifest().shards.size();
  std::uint64_t read = input_.index_bytes();
  for (std::size_t shard = 0; shard < count; ++shard) read += input_.bytes_of_shard(shard);
  progress_.expect(3 * read);
  const std::uint64_t first = shards.next();
  const BucketPlan planned = plan(first);
  progress_.expect(read + 2 * planned.scratch_bytes);
  Buckets buckets(planned, scratch);
  input_.put_aside(
      0, count, buckets, [&](std::uint64_t destination) { return destination >= first; }, progress_);
  buckets.finish();
  buckets.take_all(progress_, [&](Buckets::Item& item) { shards.write(item); });
  shards.finish();
}

[[noreturn]] void refuse_other(const std::string& path) {
  raise(ErrorKind::InvalidArgument,
        "{}: there is a published dataset, made of another input or with other options: write elsewhere, or replace it "
        "with overwrite",
        path);
}

std::string Shuffler::run(const std::string& out) {
  const std::string task = input_.task_json();
  LocalStore files;
  if (options_.resume && !options_.overwrite && layout::has_manifest(files, out)) {
    if (is_result_of(out, task, input_.end())) return layout::read_manifest(files, out).fingerprint;
    refuse_other(out);
  }
  const std::optional<ShardsElsewhere>& elsewhere = options_.elsewhere;
  DatasetFolder folder(out, options_.resume ? Access::Resume : Access::Whole, options_.overwrite);
  ShuffledShards shards(folder, input_.manifest(), input_.values(), task, options_.shard_bytes, input_.end());
  try {
    if (options_.resume) shards.keep_finished();
    if (elsewhere) {
      shards.tell(elsewhere->moving);
      shards.keep(elsewhere->finished, elsewhere->path);
      if (elsewhere->is_published && !shards.is_whole()) refuse_other(elsewhere->path);
    }
    write(shards, options_.scratch.empty() ? out : options_.scratch);
    std::optional<layout::FeaturesInfo> features = copy_features_to(folder);
    progress_.end();  // it may throw, and nothing is to stop what is published
    return shards.publish(std::move(features));
  } catch (...) {
    shards.drop();
    if (!shards.has_finished()) folder.abort();
    throw;
  }
}

}  // namespace

std::string shuffle(const std::string& path, const std::string& out, const ShuffleOptions& options,
                    const MakeDestinations& destinations, const TellProgress& progress) {
  check_shard_bytes(options);
  return Shuffler(path, options, destinations, progress).run(out);
}

}  // namespace penstock::writer
