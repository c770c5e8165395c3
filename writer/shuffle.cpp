#include "writer/shuffle.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/digest.h"
#include "layout/folder.h"
#include "layout/format.h"
#include "writer/buckets.h"
#include "writer/checked_input.h"
#include "writer/dataset_folder.h"
#include "writer/features.h"
#include "writer/observations.h"
#include "writer/record_input.h"
#include "writer/shuffled_shards.h"
#include "writer/shuffled_values.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::writer {
namespace {

using layout::Manifest;
using layout::ShardInfo;

bool is_published(LocalStore& files, const std::string& path) {
  try {
    return layout::list_folder(files, path).has_manifest;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::NotFound) throw;
    return false;
  }
}

// Destinations of observations that come in ascending order, asked for in blocks. What lies past the last observation
// stays there.
class Places {
 public:
  Places(Destinations destinations, std::uint64_t size) : destinations_(std::move(destinations)), size_(size) {}

  std::uint64_t of(std::uint64_t observation) {
    if (observation >= size_) return observation;
    if (observation < first_ || observation - first_ >= places_.size()) load(observation);
    return places_[observation - first_];
  }

 private:
  static constexpr std::uint64_t kBlock = 4096;

  void load(std::uint64_t observation) {
    first_ = observation;
    std::vector<std::uint64_t> observations(std::min(kBlock, size_ - first_));
    std::iota(observations.begin(), observations.end(), first_);
    places_.resize(observations.size());
    destinations_(observations, places_);
  }

  Destinations destinations_;
  std::uint64_t size_;
  std::uint64_t first_ = 0;
  std::vector<std::uint64_t> places_;
};

// Puts the pieces of one shard aside, and checks all that the manifest says of its content.
class ShardReader {
 public:
  ShardReader(const std::string& path, const layout::Format& format, const ShardInfo& info, ShuffledValues& values,
              std::uint64_t large_above, Progress& progress)
      : info_(info), values_(values), large_above_(large_above) {
    if (format.has_records()) records_.emplace(path, format, info, progress);
    if (format.has_metadata()) data_.emplace(path + "/" + layout::kDataName, info.data_bytes, progress);
  }

  /// The next piece of the shard; null: it is read and goes nowhere.
  void take(const Piece& piece, std::uint64_t record_bytes, std::uint64_t destination, Buckets* buckets) {
    if (piece.begins_span) begin_span(piece);
    if (buckets != nullptr) {
      PartBytes bytes{};
      bytes[kEntryPart] = piece.entry_bytes;
      bytes[kValuesPart] = values_.bytes();
      bytes[kRecordsPart] = piece.records * record_bytes;
      buckets->begin(destination, bytes);
      put_entry(piece, *buckets);
      if (values_.bytes() != 0) buckets->put(values_.of(piece.document));
    }
    if (piece.records == 0) return;
    records_->take(piece.records, [&](Buckets::Bytes part) {
      if (buckets != nullptr) buckets->put(part);
    });
  }

  void check_digests() const {
    if (records_) records_->check_digests();
    if (!data_ || spans_.bytes() == *info_.span_digest) return;
    raise(ErrorKind::Corruption, "{}: digest of the spans is {}, the manifest says {}", data_->path(),
          hex_of(spans_.bytes()), hex_of(*info_.span_digest));
  }

 private:
  [[nodiscard]] bool is_held(const Piece& piece) const noexcept { return piece.entry_bytes <= large_above_; }

  void begin_span(const Piece& piece) {
    if (is_held(piece)) {
      entry_.resize(piece.entry_bytes);
      data_->read(piece.entry_begin, entry_);
      return spans_.add(piece.span_records, piece.entry_bytes, digest_of(entry_));
    }
    Digest digest;
    data_->take(piece.entry_begin, piece.entry_bytes, [&](Buckets::Bytes part) { digest.update(part); });
    spans_.add(piece.span_records, piece.entry_bytes, digest.bytes());
  }

  void put_entry(const Piece& piece, Buckets& buckets) {
    if (piece.entry_bytes == 0) return;
    if (is_held(piece)) return buckets.put(entry_);
    data_->take(piece.entry_begin, piece.entry_bytes, [&](Buckets::Bytes part) { buckets.put(part); });
  }

  const ShardInfo& info_;
  ShuffledValues& values_;
  const std::uint64_t large_above_;
  std::optional<RecordInput> records_;
  std::optional<CheckedInput> data_;
  layout::SpanDigest spans_;
  std::vector<std::byte> entry_;  // of the span under way, if it is not too large
};

class Shuffler {
 public:
  Shuffler(const std::string& path, const Manifest& manifest, const ShuffleOptions& options,
           const MakeDestinations& destinations, const TellProgress& tell)
      : path_(path),
        manifest_(manifest),
        options_(options),
        observations_(path, manifest, options.window),
        values_(path, manifest),
        make_destinations_(destinations),
        progress_(tell) {}

  std::string run(const std::string& out);

 private:
  [[nodiscard]] std::string task_json() const;
  [[nodiscard]] nlohmann::json features_task() const;
  std::optional<layout::FeaturesInfo> copy_features_to(DatasetFolder& out) const;
  [[nodiscard]] std::uint64_t end() const noexcept { return observations_.size() + 1; }
  [[nodiscard]] std::uint64_t input_bytes() const;
  [[nodiscard]] Places places() const;
  BucketPlan plan(std::uint64_t first);
  void put_aside(Buckets& buckets, std::uint64_t first);
  void write(ShuffledShards& shards, const std::string& scratch);

  const std::string& path_;
  const Manifest& manifest_;
  const ShuffleOptions& options_;
  const Observations observations_;
  ShuffledValues values_;
  const MakeDestinations& make_destinations_;
  Progress progress_;
};

std::string Shuffler::task_json() const {
  nlohmann::json task;
  task["shuffle"] = manifest_.fingerprint;
  // What the result takes over and the fingerprint leaves out.
  if (manifest_.format.has_columns()) task["columns"] = values_.digest();
  if (manifest_.tokenizer_json != "null") task["tokenizer"] = nlohmann::json::parse(manifest_.tokenizer_json);
  if (manifest_.features) task["features"] = features_task();
  task["order"] = nlohmann::json::parse(options_.order_json);
  task["window"] = options_.window ? nlohmann::json(*options_.window) : nlohmann::json();
  task["shard_size"] = options_.shard_bytes;
  return task.dump();
}

// Their names, and their columns, which are no part of their fingerprint either.
nlohmann::json Shuffler::features_task() const {
  LocalStore files;
  const std::string path = path_ + "/" + manifest_.features->folder;
  const Manifest features = layout::read_manifest(files, path);
  if (features.fingerprint != manifest_.features->fingerprint) {
    raise(ErrorKind::Corruption, "{}: fingerprint {}, the manifest of {} says {}", path, features.fingerprint, path_,
          manifest_.features->fingerprint);
  }
  nlohmann::json task;
  task["fingerprint"] = features.fingerprint;
  if (features.format.has_columns()) task["columns"] = ShuffledValues(path, features).digest();
  return task;
}

std::optional<layout::FeaturesInfo> Shuffler::copy_features_to(DatasetFolder& out) const {
  if (!manifest_.features) return std::nullopt;
  return copy_features(path_, *manifest_.features, out);
}

std::uint64_t Shuffler::input_bytes() const {
  std::uint64_t bytes = 0;
  for (const ShardInfo& shard : manifest_.shards) {
    for (const layout::ShardFile& file : layout::shard_files(manifest_.format, shard)) {
      if (file.name != layout::kDirectoryName && file.name != layout::kColumnsName) bytes += file.bytes;
    }
  }
  return bytes;
}

Places Shuffler::places() const {
  const std::uint64_t size = observations_.size();
  return {size == 0 ? Destinations() : make_destinations_(size), size};
}

BucketPlan Shuffler::plan(std::uint64_t first) {
  const std::uint64_t record_bytes = manifest_.format.stored_record_bytes();
  BucketPlanner planner(first, end(), options_.memory_bytes);
  Places places = this->places();
  for (std::size_t shard = 0; shard < manifest_.shards.size(); ++shard) {
    observations_.of_shard(shard, progress_, [&](const Piece& piece) {
      const std::uint64_t destination = places.of(piece.observation);
      if (destination >= first)
        planner.add(destination, piece.records * record_bytes + piece.entry_bytes + values_.bytes());
    });
    progress_.passed(0);
  }
  return planner.plan();
}

void Shuffler::put_aside(Buckets& buckets, std::uint64_t first) {
  const layout::Format& format = manifest_.format;
  Places places = this->places();
  for (std::size_t shard = 0; shard < manifest_.shards.size(); ++shard) {
    const ShardInfo& info = manifest_.shards[shard];
    values_.open_shard(shard);
    ShardReader reader(path_ + "/" + info.name, format, info, values_, buckets.plan().large_above, progress_);
    observations_.of_shard(shard, progress_, [&](const Piece& piece) {
      const std::uint64_t destination = places.of(piece.observation);
      reader.take(piece, format.stored_record_bytes(), destination, destination >= first ? &buckets : nullptr);
    });
    reader.check_digests();
  }
  buckets.finish();
}

void Shuffler::write(ShuffledShards& shards, const std::string& scratch) {
  if (shards.is_whole()) return;
  const std::uint64_t read = input_bytes() + observations_.index_bytes();
  progress_.expect(3 * read);
  const BucketPlan planned = plan(shards.next());
  progress_.expect(read + 2 * planned.scratch_bytes);
  Buckets buckets(planned, scratch);
  put_aside(buckets, shards.next());
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
  const std::string task = task_json();
  LocalStore files;
  if (options_.resume && !options_.overwrite && is_published(files, out)) {
    if (is_result_of(out, task, end())) return layout::read_manifest(files, out).fingerprint;
    refuse_other(out);
  }
  const std::optional<ShardsElsewhere>& elsewhere = options_.elsewhere;
  DatasetFolder folder(out, options_.resume ? Access::Resume : Access::Whole, options_.overwrite);
  ShuffledShards shards(folder, manifest_, values_, task, options_.shard_bytes, end());
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
  if (options.shard_bytes == 0) {
    raise(ErrorKind::InvalidArgument, "a shard size of 0 bytes, expected at least 1");
  }
  LocalStore files;
  const Manifest manifest = layout::read_manifest(files, path);
  return Shuffler(path, manifest, options, destinations, progress).run(out);
}

}  // namespace penstock::writer
