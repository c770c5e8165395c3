#include "writer/folder/dataset_folder.h"

#include "core/base/error.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/folder/make_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

namespace penstock::writer {
namespace {

using layout::kManifestName;

// Tells this boot of this machine from others: processes with the same one see each other's locks.
const std::string& this_node() {
  static const std::string node = [] {
    std::array<char, 8> text{};
    const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    const ssize_t bytes = file.get() < 0 ? 0 : ::read(file.get(), text.data(), text.size());
    return bytes == static_cast<ssize_t>(text.size()) ? std::string(text.data(), text.size()) : std::string("unknown");
  }();
  return node;
}

// Levels of folders in an unfinished one: the shards of features; of shards that are taken over, datasets and their
// shards.
constexpr int kDepth = 3;

// In names of unfinished work: <prefix><what>@<node>@<run>@<suffix>.
constexpr char kSeparator = '@';

// Over the old manifest if there is one to be replaced, else over nothing.
void put_manifest(int at, const std::string& partial, bool replaces, const std::string& path) {
  if (replaces) {
    if (::renameat(at, partial.c_str(), at, kManifestName) == 0) return;
    raise_system(errno, fmt::format("rename {} to {}", partial, kManifestName), path);
  }
  if (rename_new(at, partial, kManifestName, path) != 0) {
    raise(ErrorKind::InvalidArgument, "{}: someone else has published a dataset here", path);
  }
}

}  // namespace

DatasetFolder::DatasetFolder(std::string path, Access access, bool overwrite, const std::optional<std::string>& run)
    : path_(std::move(path)),
      access_(access),
      run_(run                                                   ? *run
           : access == Access::Whole || access == Access::Resume ? unique_run()
                                                                 : kUnnamedRun),
      owner_(::getpid()) {
  if (path_.empty()) raise(ErrorKind::InvalidArgument, "the dataset's path is empty");
  check_run(run_);
  try {
    if (access_ != Access::Commit) make();
    folder_ = open_folder(AT_FDCWD, path_, path_);
    lock();
    if (locked_) run_lock_.emplace(folder_.get(), path_, run_);
    check(overwrite);
  } catch (...) {
    abort();
    throw;
  }
}

DatasetFolder::~DatasetFolder() {
  release();
}

bool DatasetFolder::is_owner() const noexcept {
  return owner_ == ::getpid();
}

void DatasetFolder::make() {
  if (!make_folder(path_)) return;
  created_ = access_ != Access::Shard;  // others may be about to write their shards into it
  sync_parent(path_);
}

void DatasetFolder::lock() {
  const int how = access_ == Access::Shard ? LOCK_SH : LOCK_EX;
  int result = 0;
  do {
    result = ::flock(folder_.get(), how | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  locked_ = result == 0;
  if (locked_ || errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return;
  if (errno != EWOULDBLOCK) raise_system(errno, "lock the dataset's folder", path_);
  created_ = false;  // another's now
  const char* const then =
      access_ == Access::Commit ? ", then go on with --resume or commit again: finished shards are kept" : "";
  raise(ErrorKind::InvalidArgument, "{}: another writer is at work in this folder; wait until it has ended{}", path_,
        then);
}

void DatasetFolder::check(bool overwrite) {
  const layout::FolderListing listing = layout::list_folder(files_, path_);
  if (listing.has_manifest && !overwrite) {
    raise(ErrorKind::InvalidArgument,
          "{}: there is a published dataset: write elsewhere, or let a writer replace it with overwrite", path_);
  }
  replaces_ = listing.has_manifest;
  if (replaces_) note_replaced();
  clears_ = replaces_ || (access_ == Access::Whole && overwrite);
  generation_ = layout::unpublished_generation(files_, path_, listing);
  if (access_ == Access::Shard) return;
  if (access_ == Access::Whole && !overwrite && !listing.shards.empty()) {
    raise(ErrorKind::InvalidArgument, "{}", layout::describe_unfinished(files_, path_, listing));
  }
  if (access_ == Access::Whole) remove_shards(listing.numbers(generation_));
  if (locked_) remove_leftovers(false);
}

// Of a dataset that was fetched from an object store, shards have names of another form.
void DatasetFolder::note_replaced() {
  try {
    const layout::Manifest manifest = layout::read_manifest(files_, path_);
    for (const layout::ShardInfo& shard : manifest.shards) replaced_.push_back(shard.name);
    if (manifest.features) replaced_.push_back(manifest.features->folder);
  } catch (const Error& error) {  // what a damaged manifest named is unknown
    if (error.kind() == ErrorKind::IoError) throw;
  }
}

std::vector<std::uint64_t> DatasetFolder::finished() const {
  return layout::list_folder(files_, path_).numbers(generation_);
}

std::string DatasetFolder::make_partial(std::uint64_t number) const {
  std::string name = partial_name(shard_name(number));
  if (::mkdirat(folder_.get(), name.c_str(), 0777) != 0)
    raise_system(errno, "create folder", layout::path_in(path_, name));
  return name;
}

void DatasetFolder::remove_shards(const std::vector<std::uint64_t>& numbers) {
  std::vector<std::string> names(numbers.size());
  std::transform(numbers.begin(), numbers.end(), names.begin(),
                 [this](std::uint64_t number) { return shard_name(number); });
  remove_folders(names);
}

void DatasetFolder::remove_folders(const std::vector<std::string>& names) {
  if (names.empty()) return;
  // Renamed before they are emptied: a folder with a shard's name always is a whole shard.
  std::vector<std::string> removed;
  for (const std::string& name : names) {
    removed.push_back(partial_name(name));
    rename_new(folder_.get(), name, removed.back(), path_);
  }
  sync_folder(folder_.get(), path_);
  for (const std::string& name : removed) {
    if (!remove_folder(folder_.get(), name, kDepth)) raise_system(errno, "remove", layout::path_in(path_, name));
  }
}

// All shards and features that the new manifest does not name: the replaced dataset's, and what other writers left
// before it, of any generation and with or without a manifest.
void DatasetFolder::remove_replaced(const layout::Manifest& manifest) {
  std::set<std::string> named;
  for (const layout::ShardInfo& shard : manifest.shards) named.insert(shard.name);
  if (manifest.features) named.insert(manifest.features->folder);
  try {
    std::vector<std::string> names;
    const layout::FolderListing listing = layout::list_folder(files_, path_);
    for (const layout::ShardId& id : listing.shards) names.push_back(layout::shard_name(id.number, id.generation));
    for (const std::uint64_t generation : listing.features) names.push_back(layout::features_name(generation));
    for (const std::string& name : listing.others) {
      if (std::find(replaced_.begin(), replaced_.end(), name) != replaced_.end()) names.push_back(name);
    }
    std::erase_if(names, [&](const std::string& name) { return named.contains(name); });
    remove_folders(names);
  } catch (const Error& error) {
    throw Error(error.kind(),
                fmt::format("{}: the new dataset is published, but the shards that were there are not all removed: {}",
                            path_, error.what()),
                error.error_number(), error.path());
  }
}

std::string DatasetFolder::partial_name(const std::string& name) const {
  return fmt::format("{}{}{}{}{}{}{}{}", layout::kPartialPrefix, name, kSeparator, this_node(), kSeparator, run_,
                     kSeparator, unique_suffix());
}

// With the lock held alone no writer of this node is at work, and none of this run.
bool DatasetFolder::is_dead(const std::string& leftover) const {
  const std::size_t node = leftover.find(kSeparator);
  const std::size_t run = node == std::string::npos ? node : leftover.find(kSeparator, node + 1);
  const std::size_t suffix = run == std::string::npos ? run : leftover.find(kSeparator, run + 1);
  if (suffix == std::string::npos) return false;
  if (leftover.compare(node + 1, run - node - 1, this_node()) == 0) return true;
  const std::string_view its_run = std::string_view(leftover).substr(run + 1, suffix - run - 1);
  return its_run != kUnnamedRun && its_run == run_;
}

void DatasetFolder::clean() {
  remove_leftovers(true);
}

void DatasetFolder::remove_leftovers(bool all) {
  for (const std::string& name : layout::list_folder(files_, path_).leftovers) {
    if (!all && !is_dead(name)) continue;
    if (!remove_folder(folder_.get(), name, kDepth)) raise_system(errno, "remove", layout::path_in(path_, name));
  }
}

void DatasetFolder::retract(const std::string& from, const std::string& to) noexcept {
  ::renameat(folder_.get(), from.c_str(), folder_.get(), to.c_str());
}

void DatasetFolder::publish_shard(const std::string& partial, std::uint64_t number) {
  const std::string name = shard_name(number);
  if (rename_new(folder_.get(), partial, name, path_) != 0) {
    raise(ErrorKind::InvalidArgument, "{}: shard {} is there already; it stays as it is", path_, name);
  }
  try {
    sync_folder(folder_.get(), path_);
  } catch (...) {
    retract(name, partial);  // whether it would last is not known: it is not published
    throw;
  }
  published_.push_back(number);
}

layout::FeaturesInfo DatasetFolder::publish_features(const std::function<std::string(const std::string&)>& make) {
  const std::string name = layout::features_name(generation_);
  const std::vector<std::uint64_t> there = layout::list_folder(files_, path_).features;
  if (std::find(there.begin(), there.end(), generation_) != there.end()) remove_folders({name});  // of who was killed
  const std::string partial = partial_name(name);
  try {
    layout::FeaturesInfo info{name, make(layout::path_in(path_, partial))};
    if (rename_new(folder_.get(), partial, name, path_) != 0) {
      raise(ErrorKind::InvalidArgument, "{}/{}: something else has the name of the features' folder", path_, name);
    }
    features_ = name;
    sync_folder(folder_.get(), path_);
    return info;
  } catch (...) {
    remove_folder(folder_.get(), partial, kDepth);
    remove_features();
    throw;
  }
}

void DatasetFolder::remove_features() noexcept {
  if (features_.empty() || !is_owner() || folder_.get() < 0) return;
  remove_folder(folder_.get(), features_, kDepth);
  features_.clear();
}

void DatasetFolder::publish_manifest(const layout::Manifest& manifest) {
  const std::string text = layout::write_manifest(manifest);
  const std::string partial = partial_name(kManifestName);
  const std::string shown = layout::path_in(path_, partial);
  try {
    Descriptor file = create_file(folder_.get(), partial, shown);
    write_all(file.get(), std::as_bytes(std::span(text)), 0, shown);
    sync_file(file.get(), shown);
    file.close(shown);
    if (run_lock_) run_lock_->remove_file();
    put_manifest(folder_.get(), partial, replaces_, path_);
  } catch (...) {
    ::unlinkat(folder_.get(), partial.c_str(), 0);
    throw;
  }
  sync_manifest();
  published_.clear();
  features_.clear();
  created_ = false;
  if (clears_) remove_replaced(manifest);
}

// Whether the rename would last is not known where this fails. Alone, the manifest is taken back. One that it replaced
// is gone, so the new one stays, and the shards of both: after a loss of power either manifest finds all of its own.
void DatasetFolder::sync_manifest() {
  try {
    sync_folder(folder_.get(), path_);
    sync_above(path_);
  } catch (const Error& error) {
    if (!replaces_ && ::unlinkat(folder_.get(), kManifestName, 0) == 0) throw;
    published_.clear();
    features_.clear();
    created_ = false;
    throw Error(
        error.kind(),
        fmt::format("{}: the new dataset is published, but may not outlast a loss of power: {}", path_, error.what()),
        error.error_number(), error.path());
  }
}

void DatasetFolder::release() noexcept {
  remove_features();
  // Unlocked by hand: a child forked meanwhile shares the lock and would keep it.
  if (locked_ && is_owner() && folder_.get() >= 0) ::flock(folder_.get(), LOCK_UN);
  locked_ = false;
  run_lock_.reset();
  folder_.reset();
}

void DatasetFolder::abort() noexcept {
  if (is_owner() && folder_.get() >= 0) {
    try {
      remove_shards(published_);
    } catch (const std::exception&) {  // what is left is unfinished, and the next writer says so
    }
  }
  remove_features();
  run_lock_.reset();                                   // its file is in the folder
  if (is_owner() && created_) ::rmdir(path_.c_str());  // only if nothing is in it
  release();
}

}  // namespace penstock::writer
