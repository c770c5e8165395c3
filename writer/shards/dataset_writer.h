// DatasetWriter: appends documents, cuts them into shards, and commits.
//
// A shard ends only between appends: after the one that brings its records and entries to `shard_bytes`. So the bytes
// depend on what was appended alone. Arguments are checked before anything is written: a refused append loses nothing.
// After a failed write the writer can only be aborted. One thread at a time; not in a forked child.
#pragma once

#include "layout/dataset.h"
#include "layout/dataset/manifest.h"
#include "writer/folder/dataset_folder.h"
#include "writer/shards/features.h"
#include "writer/shards/shard_writer.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace penstock::writer {

struct WriterOptions {
  layout::Format format;
  std::uint64_t shard_bytes = std::uint64_t{1} << 30;
  std::string tokenizer_json = "null";
  std::string task_json = "null";      // written into shard.json
  std::optional<std::uint64_t> shard;  // write this shard alone, and do not commit
  std::optional<std::string> run;      // whose processes write together; none: its own, or with `shard` the unnamed one
  // Of each column the names that are known from the start, in the order of their codes: in every shard's table.
  std::vector<layout::Categories> categories;
  std::optional<FeatureTable> features{};  // of the dataset; not of a shard alone
  bool overwrite = false;                  // of a published dataset, which stays until the new one is published
};

using Bytes = std::span<const std::byte>;

/// Values of documents, and of each category the names that their codes count: those of this call alone.
struct NamedValues {
  ColumnValues values;
  std::vector<layout::Categories> names = {};  // by column; empty where it is no category
};

class DatasetWriter {
 public:
  /// Makes and locks the folder. Throws what DatasetFolder does, and InvalidArgument for options that cannot be.
  DatasetWriter(const std::string& path, WriterOptions options);
  /// Aborts what was neither committed nor aborted.
  ~DatasetWriter();
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;

  /// One document: packed records of the user's fields (empty for opaque), its entry (nullopt for a token stream) and
  /// its values of all columns. In the ids layout it gets an entry of its own.
  void append(Bytes records, std::optional<Bytes> entry, const NamedValues& values = {});

  /// Many documents, as append() one after the other: `lengths` in records, and for each the end of its entry in
  /// `entries` (both empty for a token stream).
  void append_batch(Bytes records, std::span<const std::uint64_t> lengths, Bytes entries,
                    std::span<const std::uint64_t> entry_ends, const NamedValues& values = {});

  /// True if append_stream() and append_cut() take records of `from`: StreamInput can read it, this writes one shard,
  /// and its documents have neither metadata nor columns.
  [[nodiscard]] bool can_append(const layout::Dataset& from) const;

  /// As append_batch() of the records of `from` from record `first` on. `lengths` in records; of a token stream one, of
  /// all records. Throws what StreamInput does: what was read before is written, and the writer has failed.
  void append_stream(const layout::Dataset& from, std::uint64_t first, std::span<const std::uint64_t> lengths);

  /// A token that cuts records into documents: the last one of each, or the first one.
  struct Cut {
    std::uint64_t token = 0;
    bool ends_document = true;
  };
  struct CutPart {
    std::uint64_t documents = 0;  // that began
    bool is_open = false;         // the last one goes on with what is appended next
  };
  /// The same of records [begin, end), cut by a token. `is_open`: they begin within the document that the call before
  /// left open.
  CutPart append_cut(const layout::Dataset& from, std::uint64_t begin, std::uint64_t end, const Cut& cut, bool is_open);

  /// Ids layout: adds an entry; its number among all entries of this writer.
  std::uint64_t entry(Bytes entry, const NamedValues& values = {});

  /// Ids layout: records with the entries' numbers, one for each record or one for all.
  void append_ids(Bytes records, std::span<const std::uint64_t> ids);

  /// The task of the shards that are finished from now on (JSON): what was taken in may be known only at the end.
  void set_task(const std::string& task_json);

  /// Finishes the last shard and (unless `shard` was given) publishes the dataset. Idempotent.
  void commit();

  /// Publishes nothing; removes what this writer wrote. Idempotent; nothing after commit().
  void abort() noexcept;

  /// Publishes nothing and keeps the finished shards, as a killed process does: for a writer that nobody closed.
  /// Idempotent; nothing after commit() and abort().
  void leave() noexcept;

  /// Whether a write failed, which its caller was told.
  [[nodiscard]] bool has_failed() const noexcept { return !failure_.empty(); }
  [[nodiscard]] const layout::Format& format() const noexcept { return options_.format; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// Shards that have their names: more after an append that ended one.
  [[nodiscard]] std::uint64_t finished_shards() const noexcept { return finished_.size(); }

 private:
  void check_usable() const;
  void check_entries(Bytes entries) const;
  void check_can_append(const layout::Dataset& from) const;
  void check_values(const NamedValues& values, std::uint64_t documents) const;
  ColumnValues numbered(const NamedValues& values, std::uint64_t documents);
  void add_names(const NamedValues& values);
  void check_batch(Bytes records, std::span<const std::uint64_t> lengths, Bytes entries,
                   std::span<const std::uint64_t> entry_ends) const;
  ShardWriter& shard();
  [[nodiscard]] bool is_full() const noexcept;
  void finish_shard();
  void publish();
  void roll();
  void append_with_ids(Bytes records, std::span<const std::uint64_t> lengths, Bytes entries,
                       std::span<const std::uint64_t> entry_ends, const ColumnValues& own);
  void check_ids(std::span<const std::uint64_t> ids, std::uint64_t count) const;
  // Arguments were checked: what fails now failed half-way, so that this shard cannot be gone on with.
  template <typename Action>
  void guarded(Action&& action) {
    try {
      action();
    } catch (const std::exception& error) {
      failure_ = error.what();
      shard_.reset();
      throw;
    }
  }

  WriterOptions options_;
  DatasetFolder folder_;
  std::optional<ShardWriter> shard_;
  std::vector<layout::ShardInfo> finished_;
  std::vector<layout::Categories> names_;  // of each column, in the order in which they came
  std::vector<std::unordered_map<std::string, std::int32_t>> numbers_;
  std::uint64_t names_bytes_ = 0;                 // of all of them, as a manifest has them
  std::vector<std::vector<std::int32_t>> codes_;  // of the call under way, numbers of names_
  std::vector<std::byte> stored_;                 // records with their ids, one chunk
  std::uint64_t first_entry_ = 0;                 // of the shard under way, among all entries
  std::uint64_t records_ = 0;
  std::string failure_;
  bool closed_ = false;
};

/// Writes features into `out`; what its manifest is to say of them. Throws InvalidArgument, IoError.
layout::FeaturesInfo write_features(DatasetFolder& out, const FeatureTable& features);

/// Writes them as a dataset at `path`; its fingerprint. Throws as write_features().
std::string write_features(const std::string& path, const FeatureTable& features);

}  // namespace penstock::writer
