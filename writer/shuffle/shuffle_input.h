// ShuffleInput: the dataset that is shuffled: its pieces in order, where each goes, and what is put aside of it.
//
// One thread at a time. Memory is a few MiB of files' buffers, and an entry where it is needed more than once.
#pragma once

#include "layout/dataset/manifest.h"
#include "writer/files/progress.h"
#include "writer/shuffle/buckets.h"
#include "writer/shuffle/observations.h"
#include "writer/shuffle/shuffle_options.h"
#include "writer/shuffle/shuffled_values.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace penstock::writer {

class ShuffleInput {
 public:
  /// Reads the manifest. Throws InvalidArgument where the dataset has no such observations; what reading it does.
  ShuffleInput(std::string path, const ShuffleOptions& options, MakeDestinations destinations);
  ShuffleInput(const ShuffleInput&) = delete;
  ShuffleInput& operator=(const ShuffleInput&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const layout::Manifest& manifest() const noexcept { return manifest_; }
  [[nodiscard]] const ShuffledValues& values() const noexcept { return values_; }
  /// Behind the last destination, which is that of the records past the last window.
  [[nodiscard]] std::uint64_t end() const noexcept { return observations_.size() + 1; }
  /// Bytes of a shard's files that are read, and of all shards' indices, which are read once more to plan.
  [[nodiscard]] std::uint64_t bytes_of_shard(std::size_t shard) const;
  [[nodiscard]] std::uint64_t index_bytes() const { return observations_.index_bytes(); }
  /// Bytes of a piece in the result: records, entry, values.
  [[nodiscard]] std::uint64_t bytes_of(const Piece& piece) const noexcept;

  /// What tells this shuffle from others, as JSON; a task of a shard adds which destinations it has. Throws Corruption.
  [[nodiscard]] std::string task_json() const;

  /// Pieces of the shards [begin, end), in order, each with its destination: reads their indices alone.
  using Each = std::function<void(const Piece&, std::uint64_t destination)>;
  void each_piece(std::size_t begin, std::size_t end, Progress& progress, const Each& each) const;

  /// Puts the pieces of these shards aside whose destination is wanted, and checks everything that the manifest says of
  /// the shards. Throws Corruption, IoError.
  void put_aside(std::size_t begin, std::size_t end, Buckets& buckets,
                 const std::function<bool(std::uint64_t destination)>& is_wanted, Progress& progress);

 private:
  [[nodiscard]] nlohmann::json features_task() const;

  const std::string path_;
  const ShuffleOptions& options_;
  const layout::Manifest manifest_;
  const Observations observations_;
  ShuffledValues values_;
  const MakeDestinations make_destinations_;
};

}  // namespace penstock::writer
