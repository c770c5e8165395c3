// Observations: how a dataset's records and spans are cut into windows or documents, in the order of the stream.
//
// Reads the index of each shard, checked, and nothing else. A value but for that; any thread.
#pragma once

#include "layout/dataset/manifest.h"
#include "writer/files/progress.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace penstock::writer {

/// What one observation has of one span. A document is one piece; a window is as many as there are spans and shards in
/// it. A document without records, which is in no window, is a piece of the window that begins at or before it.
struct Piece {
  std::uint64_t observation = 0;  // size() for what lies past the last window
  std::uint64_t records = 0;      // the next of the shard
  std::uint64_t entry_begin = 0;  // in metadata.bin
  std::uint64_t entry_bytes = 0;
  bool begins_span = false;
  std::uint64_t span_records = 0;  // of the whole span
  std::uint64_t document = 0;      // its number in the shard
};

class Observations {
 public:
  using Take = std::function<void(const Piece&)>;

  /// Windows of this many records, or documents. Throws InvalidArgument where the dataset has none of them: its mode,
  /// its layout, a window longer than the stream. `manifest` outlives this.
  Observations(std::string path, const layout::Manifest& manifest, std::optional<std::uint64_t> window);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// The pieces of a shard, in order. Throws NotFound, IoError, Corruption.
  void of_shard(std::size_t shard, Progress& progress, const Take& take) const;

  /// Bytes that of_shard() reads of all shards.
  [[nodiscard]] std::uint64_t index_bytes() const;

 private:
  [[nodiscard]] std::uint64_t observation_at(std::uint64_t record) const noexcept;
  void cut(std::uint64_t begin, std::uint64_t end, Piece piece, const Take& take) const;
  void cut_compact(std::size_t shard, Progress& progress, const Take& take) const;
  void cut_opaque(std::size_t shard, Progress& progress, const Take& take) const;

  std::string path_;
  const layout::Manifest& manifest_;
  std::optional<std::uint64_t> window_;
  std::vector<std::uint64_t> first_records_;  // of each shard, in the stream
  std::vector<std::uint64_t> first_spans_;
  std::uint64_t size_ = 0;
};

}  // namespace penstock::writer
