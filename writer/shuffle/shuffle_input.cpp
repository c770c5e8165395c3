#include "writer/shuffle/shuffle_input.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/digest.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/files/checked_input.h"
#include "writer/files/record_input.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace penstock::writer {
namespace {

using layout::Manifest;
using layout::ShardInfo;

Manifest manifest_of(const std::string& path) {
  LocalStore files;
  return layout::read_manifest(files, path);
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

}  // namespace

ShuffleInput::ShuffleInput(std::string path, const ShuffleOptions& options, MakeDestinations destinations)
    : path_(std::move(path)),
      options_(options),
      manifest_(manifest_of(path_)),
      observations_(path_, manifest_, options.window),
      values_(path_, manifest_),
      make_destinations_(std::move(destinations)) {}

std::string ShuffleInput::task_json() const {
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
nlohmann::json ShuffleInput::features_task() const {
  LocalStore files;
  const std::string path = layout::path_in(path_, manifest_.features->folder);
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

std::uint64_t ShuffleInput::bytes_of_shard(std::size_t shard) const {
  std::uint64_t bytes = 0;
  for (const layout::ShardFile& file : layout::shard_files(manifest_.format, manifest_.shards[shard])) {
    if (file.name != layout::kDirectoryName && file.name != layout::kColumnsName) bytes += file.bytes;
  }
  return bytes;
}

std::uint64_t ShuffleInput::bytes_of(const Piece& piece) const noexcept {
  return piece.records * manifest_.format.stored_record_bytes() + piece.entry_bytes + values_.bytes();
}

void ShuffleInput::each_piece(std::size_t begin, std::size_t end, Progress& progress, const Each& each) const {
  const std::uint64_t size = observations_.size();
  Places places(size == 0 ? Destinations() : make_destinations_(size), size);
  for (std::size_t shard = begin; shard < end; ++shard) {
    observations_.of_shard(shard, progress, [&](const Piece& piece) { each(piece, places.of(piece.observation)); });
    progress.passed(0);
  }
}

void ShuffleInput::put_aside(std::size_t begin, std::size_t end, Buckets& buckets,
                             const std::function<bool(std::uint64_t)>& is_wanted, Progress& progress) {
  const layout::Format& format = manifest_.format;
  for (std::size_t shard = begin; shard < end; ++shard) {
    const ShardInfo& info = manifest_.shards[shard];
    values_.open_shard(shard);
    ShardReader reader(layout::path_in(path_, info.name), format, info, values_, buckets.plan().large_above, progress);
    each_piece(shard, shard + 1, progress, [&](const Piece& piece, std::uint64_t destination) {
      reader.take(piece, format.stored_record_bytes(), destination, is_wanted(destination) ? &buckets : nullptr);
    });
    reader.check_digests();
  }
}

}  // namespace penstock::writer
