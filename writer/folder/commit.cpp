#include "writer/folder/commit.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/folder/dataset_folder.h"
#include "writer/shards/dataset_writer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace penstock::writer {
namespace {

void check_contiguous(const std::string& path, const std::vector<std::uint64_t>& numbers,
                      std::optional<std::uint64_t> expected) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != i) {
      raise(ErrorKind::InvalidArgument, "{}: shard {} is missing (finished shards: {}, the last is {})", path,
            layout::shard_name(i), numbers.size(), layout::shard_name(numbers.back()));
    }
  }
  if (expected && numbers.size() != *expected) {
    raise(ErrorKind::InvalidArgument, "{}: finished shards: {}, expected: {}", path, numbers.size(), *expected);
  }
}

void check_same(const std::string& path, const std::vector<std::uint64_t>& numbers,
                const std::vector<std::uint64_t>& wanted) {
  const auto [there, named] = std::mismatch(numbers.begin(), numbers.end(), wanted.begin(), wanted.end());
  if (named != wanted.end() && (there == numbers.end() || *named < *there)) {
    raise(ErrorKind::InvalidArgument, "{}: shard {} is missing", path, layout::shard_name(*named));
  }
  if (there != numbers.end()) {
    raise(ErrorKind::InvalidArgument, "{}: shard {} is finished, and is not one of those that are to be committed",
          path, layout::shard_name(*there));
  }
}

void check_task_of(const std::string& path, const layout::ShardInfo& shard, const std::vector<std::string>& tasks,
                   std::uint64_t number) {
  if (number < tasks.size() && shard.task_json == layout::check_task(tasks[number])) return;
  raise(
      ErrorKind::InvalidArgument,
      "{}/{}: it was made of another input or with other options than this run's: another run has written here. Remove "
      "it, or write all of it anew with overwrite",
      path, shard.name);
}

FinishedShard describe(const layout::Format& format, const layout::ShardInfo& info, std::uint64_t number) {
  FinishedShard shard{number, info.records, info.spans, info.entries, 0, info.task_json};
  for (const auto& [name, bytes] : layout::shard_files(format, info)) {
    shard.bytes += bytes;
    shard.files.emplace_back(name, bytes);
    shard.files.emplace_back(std::string(name) + layout::kCrcSuffix, layout::crc_bytes(bytes));
  }
  return shard;
}

FinishedShard describe(ByteStore& files, const std::string& path, const std::string& name, std::uint64_t number) {
  const auto [format, info] = layout::read_shard_manifest(files, path, name);
  return describe(format, info, number);
}

// Of a folder that no manifest names: it may be anybody's.
FinishedShard describe_unpublished(ByteStore& files, const std::string& path, const std::string& name,
                                   std::uint64_t number) {
  try {
    return describe(files, path, name, number);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::NotFound) throw;
    throw Error(ErrorKind::NotFound,
                fmt::format("{}/{}: no shard of penstock, as it has no {}: move this folder away, or write elsewhere",
                            path, name, layout::kShardManifestName),
                ENOENT, path + "/" + name);
  }
}

// Adds a shard to those of one dataset.
void gather(layout::Manifest& manifest, const std::string& path, const layout::Format& format, layout::ShardInfo info,
            const std::optional<std::vector<std::string>>& tasks) {
  const std::uint64_t number = manifest.shards.size();
  if (number == 0) manifest.format = format;
  const std::string difference = layout::format_difference(manifest.format, format);
  if (!difference.empty()) {
    raise(ErrorKind::InvalidArgument, "{}: shards 00000 and {} differ: {}", path, info.name, difference);
  }
  if (tasks) check_task_of(path, info, *tasks, number);
  manifest.shards.push_back(std::move(info));
}

}  // namespace

void check_sizes(const std::string& path, const layout::Format& format, const layout::ShardInfo& shard) {
  for (const auto& [name, bytes] : layout::shard_files(format, shard)) {
    for (const bool side : {false, true}) {
      const std::string file = path + "/" + shard.name + "/" + name + (side ? layout::kCrcSuffix : "");
      const std::uint64_t wanted = side ? layout::crc_bytes(bytes) : bytes;
      const std::uint64_t seen = open_regular(file).second;
      if (seen != wanted) {
        raise(ErrorKind::Corruption, "{}: {} bytes, its shard.json says {}", file, with_commas(seen),
              with_commas(wanted));
      }
    }
  }
}

std::vector<FinishedShard> finished_shards(const std::string& path, bool overwrite) {
  LocalStore files;
  const layout::FolderListing listing = layout::list_folder(files, path);
  std::vector<FinishedShard> shards;
  if (listing.has_manifest && !overwrite) {
    for (const layout::ShardInfo& info : layout::read_manifest(files, path).shards) {
      shards.push_back(describe(files, path, info.name, shards.size()));
    }
    return shards;
  }
  const std::uint64_t generation = layout::unpublished_generation(files, path, listing);
  for (const std::uint64_t number : listing.numbers(generation)) {
    shards.push_back(describe_unpublished(files, path, layout::shard_name(number, generation), number));
  }
  return shards;
}

std::string commit(const std::string& path, const std::string& tokenizer_json, std::optional<std::uint64_t> expected,
                   bool overwrite, const std::optional<std::vector<std::string>>& tasks,
                   const std::optional<std::string>& run, const std::optional<FeatureTable>& features,
                   const std::optional<std::vector<std::uint64_t>>& wanted) {
  layout::Manifest manifest;
  manifest.tokenizer_json = layout::check_tokenizer(tokenizer_json);
  DatasetFolder folder(path, Access::Commit, overwrite, run);
  const std::vector<std::uint64_t> numbers = folder.finished();
  if (numbers.empty())
    raise(ErrorKind::NotFound, "{}: no finished shard to commit: Writer(…, shard=K) writes them", path);
  if (wanted) {
    check_same(path, numbers, *wanted);
  } else {
    check_contiguous(path, numbers, expected);
  }
  LocalStore files;
  for (const std::uint64_t number : numbers) {
    auto [format, info] = layout::read_shard_manifest(files, path, folder.shard_name(number));
    check_sizes(path, format, info);
    gather(manifest, path, format, std::move(info), tasks);
  }
  if (features) manifest.features = write_features(folder, *features);
  folder.publish_manifest(manifest);
  return layout::fingerprint_of(manifest.format, manifest.shards);
}

FinishedShard describe_shard(std::string shard_json, const std::string& path, std::uint64_t number) {
  const auto [format, info] = layout::parse_shard_manifest(std::move(shard_json), path);
  return describe(format, info, number);
}

std::string stored_manifest(const std::string& path, const std::vector<StoredShard>& shards,
                            const std::string& tokenizer_json, const std::optional<std::vector<std::string>>& tasks,
                            const std::optional<layout::FeaturesInfo>& features) {
  layout::Manifest manifest;
  manifest.tokenizer_json = layout::check_tokenizer(tokenizer_json);
  manifest.features = features;
  for (const StoredShard& shard : shards) {
    const std::string file = path + "/" + shard.name + "/" + layout::kShardManifestName;
    auto [format, info] = layout::parse_shard_manifest(shard.shard_json, file);
    info.name = shard.name;
    gather(manifest, path, format, std::move(info), tasks);
  }
  return layout::write_manifest(manifest);
}

void remove_shards(const std::string& path, const std::vector<std::uint64_t>& numbers, bool overwrite,
                   const std::optional<std::string>& run) {
  DatasetFolder folder(path, Access::Commit, overwrite, run);
  folder.remove_shards(numbers);
}

void clean(const std::string& path, bool overwrite, const std::optional<std::string>& run) {
  DatasetFolder folder(path, Access::Commit, overwrite, run);
  folder.clean();
}

}  // namespace penstock::writer
