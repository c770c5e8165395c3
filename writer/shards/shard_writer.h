// ShardWriter: writes one shard into a partial folder, and publishes it by one rename.
//
// One thread at a time. Memory is its files' buffers (and 24 bytes an entry in the ids layout). After an error of a
// write it can only be destroyed, which removes the partial folder; so does destroying it unfinished.
#pragma once

#include "layout/dataset/manifest.h"
#include "writer/files/output_file.h"
#include "writer/folder/dataset_folder.h"
#include "writer/shards/column_writer.h"
#include "writer/shards/field_digests.h"
#include "writer/shards/id_runs.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace penstock::writer {

class ShardWriter {
 public:
  /// Makes the partial folder of shard `number` of `folder`, which must outlive this. `task_json` goes into shard.json.
  /// `first`: of each column the names that its table begins with.
  ShardWriter(DatasetFolder& folder, std::uint64_t number, const layout::Format& format, std::string task_json,
              const std::vector<layout::Categories>& first = {});
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  /// Compact: records from now on belong to a new span with this entry. Opaque: one more entry.
  void begin_span(std::span<const std::byte> entry);

  /// Ids: one more entry; its id in this shard. Throws InvalidArgument if u32 has no more.
  std::uint32_t add_entry(std::span<const std::byte> entry);

  /// The same with an entry of any size, which takes no memory: it calls its argument with each of its pieces.
  using Pieces = std::function<void(const std::function<void(std::span<const std::byte>)>&)>;
  void begin_span(const Pieces& entry);
  std::uint32_t add_entry(const Pieces& entry);

  /// The values of the entry that was added last, which every entry needs where the format has columns: document `i` of
  /// `values` (ColumnWriter::add).
  void add_values(const ColumnValues& values, std::uint64_t i, const std::vector<layout::Categories>& names);

  /// Appends whole stored records (in the ids layout with ids that add_entry gave).
  void write_records(std::span<const std::byte> records);

  /// The same in two steps, for spans that follow one another in memory: `count` records belong to the span under way;
  /// and whole stored records that were counted. Not for the ids layout.
  void count_records(std::uint64_t count);
  void write_counted(std::span<const std::byte> records);
  /// Whole records that write_counted() takes best at once.
  [[nodiscard]] std::uint64_t best_count() const noexcept;

  /// What goes into shard.json as its task.
  void set_task(std::string task_json) { task_json_ = std::move(task_json); }

  /// Bytes of records that were counted, entries and values so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] std::uint64_t entries() const noexcept { return entries_; }

  /// Completes, syncs and renames. Returns what shard.json says, with the name.
  layout::ShardInfo finish();

 private:
  void create_files(const std::vector<layout::Categories>& first);
  void begin_entry();
  void write_entry(std::span<const std::byte> entry);
  std::pair<std::uint64_t, DigestBytes> write_entry(const Pieces& entry);
  void check_ids() const;
  void write_directory(std::uint64_t count);
  void end_span();
  layout::ShardInfo finish_files();
  void write_shard_manifest(const layout::ShardInfo& info);
  void give_up() noexcept;

  DatasetFolder& folder_;
  std::uint64_t number_;
  const layout::Format format_;
  std::string task_json_;
  std::string partial_;  // name of the partial folder; "" once it is renamed
  std::string path_;     // of the partial folder, for messages
  Descriptor directory_;
  std::optional<OutputFile> stream_, data_, index_, span_directory_;

  FieldDigests field_digests_;
  std::optional<ColumnWriter> columns_;
  layout::SpanDigest span_digest_;
  IdRuns runs_;
  std::uint64_t records_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t span_records_ = 0;  // of the span under way (compact)
  std::uint64_t entry_bytes_ = 0;
  DigestBytes entry_digest_{};
};

}  // namespace penstock::writer
