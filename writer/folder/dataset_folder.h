// DatasetFolder: a dataset's folder while something is written into it: its lock, its shards, the publishing.
//
// What is published appears by one rename, after it was synced, and the rename is synced too. One owner, one thread at
// a time. A forked child's copy does nothing but close its descriptors.
//
// Locks are flock() on the folder itself, so that a killed writer leaves nothing behind: a writer of a whole
// dataset or commits holds it alone, those who write one shard each hold it together. Beside it all hold the lock of
// their run (writer/folder/run_lock.h), which may outlast them. Where a file system has no flock, writers are not kept
// apart and leftovers of others are left alone; where its locks are local to a node, as on many parallel file systems,
// so are leftovers of other nodes: an unfinished folder's name says its node and its run.
#pragma once

#include "core/io/local/local_store.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"
#include "writer/folder/run_lock.h"
#include "writer/folder/system.h"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace penstock::writer {

enum class Access {
  Whole,   // a new dataset; alone
  Shard,   // one shard of a dataset that someone else commits; together with others
  Commit,  // publishing or removing finished shards; alone
  Resume,  // a dataset that goes on from the finished shards that are there; alone
};

class DatasetFolder {
 public:
  /// Opens (all but Commit: creates) the folder and locks it. With `overwrite` a published dataset may be there: it
  /// stays as it is until publish_manifest() puts the new one in its place; finished shards that are not published are
  /// removed (Whole). Throws InvalidArgument where a published dataset is there without `overwrite`, where finished
  /// shards are (Whole), and where another writer is at work; NotFound; IoError.
  /// `run` is the one that it belongs to; none: a run of its own (Whole, Resume), else the unnamed one.
  DatasetFolder(std::string path, Access access, bool overwrite, const std::optional<std::string>& run = std::nullopt);
  ~DatasetFolder();
  DatasetFolder(const DatasetFolder&) = delete;
  DatasetFolder& operator=(const DatasetFolder&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int fd() const noexcept { return folder_.get(); }
  /// False in a forked child.
  [[nodiscard]] bool is_owner() const noexcept;

  /// The name that shard `number` has here; no shard of a published dataset has it.
  [[nodiscard]] std::string shard_name(std::uint64_t number) const { return layout::shard_name(number, generation_); }
  /// Numbers of the finished shards that are not published, ascending.
  [[nodiscard]] std::vector<std::uint64_t> finished() const;

  /// Makes an empty .partial-… folder for shard `number`; its name.
  [[nodiscard]] std::string make_partial(std::uint64_t number) const;

  /// Renames the complete, synced folder `partial` to the name of shard `number`; throws InvalidArgument if it exists.
  void publish_shard(const std::string& partial, std::uint64_t number);

  /// The features' folder of this generation: `make` writes a dataset at the path that it gets and returns its
  /// fingerprint. What a manifest says of it, which must be published next: else the folder is removed.
  [[nodiscard]] layout::FeaturesInfo publish_features(const std::function<std::string(const std::string&)>& make);

  /// Writes dataset.json by one rename, over that of the dataset that is replaced; then, where one is or where the new
  /// one overwrites the whole folder, removes all shards that it does not name. What this object published stays,
  /// whatever is thrown after the rename; the message then says that the dataset is published.
  void publish_manifest(const layout::Manifest& manifest);

  /// Removes finished shards of the folder. Throws NotFound for one that is not there, IoError.
  void remove_shards(const std::vector<std::uint64_t>& numbers);

  /// Removes what is unfinished, of whatever run and node: its writers are known to be dead. Throws IoError.
  void clean();

  /// Gives the lock back, keeping what was published.
  void release() noexcept;

  /// Removes what this object published (and the folder, if it made it and nothing is in it), then releases.
  void abort() noexcept;

 private:
  void make();
  void lock();
  void check(bool overwrite);
  void note_replaced();
  void remove_folders(const std::vector<std::string>& names);
  void remove_features() noexcept;
  void sync_manifest();
  void remove_replaced(const layout::Manifest& manifest);
  [[nodiscard]] std::string partial_name(const std::string& name) const;
  [[nodiscard]] bool is_dead(const std::string& leftover) const;
  void remove_leftovers(bool all);
  void retract(const std::string& from, const std::string& to) noexcept;

  mutable LocalStore files_;  // lists the folder; opens no channel
  std::string path_;
  Access access_;
  Descriptor folder_;
  std::string run_;
  std::optional<RunLock> run_lock_;  // none where the file system has no flock
  pid_t owner_;
  bool created_ = false;
  bool locked_ = false;                // false where the file system has no flock
  bool replaces_ = false;              // a published dataset is there, and is to be replaced
  bool clears_ = false;                // the new manifest's shards are to be all that is there
  std::vector<std::string> replaced_;  // folders that the published manifest names, in whatever form
  std::uint64_t generation_ = 0;
  std::vector<std::uint64_t> published_;
  std::string features_;  // the folder that publish_features() made and no manifest names yet
};

}  // namespace penstock::writer
