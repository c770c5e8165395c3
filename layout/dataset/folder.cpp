#include "layout/dataset/folder.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "layout/reading/huge_pages.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

namespace penstock::layout {
namespace {

// bindings/penstock makes them beside the shards: what was put in, which revisions and engine made the shards, how they
// are annotated; what each task left out. The list of all that is left out stays.
bool is_note(std::string_view name) {
  constexpr std::array kNotes{std::string_view(".import-inputs"), std::string_view(".hub-revisions"),
                              std::string_view(".text-engine"), std::string_view(".annotating")};
  if (name.starts_with("skipped-") && name.ends_with(".jsonl")) return true;
  return std::find(kNotes.begin(), kNotes.end(), name) != kNotes.end();
}

bool seems_dataset(ByteStore& store, const std::string& folder) {
  try {
    return has_manifest(store, folder);
  } catch (const Error&) {  // somebody else's
    return false;
  }
}

// Corpora are often kept as corpus/train, corpus/val: the folder above is opened by mistake.
std::string hint_of_datasets_in(ByteStore& store, const std::string& path) {
  constexpr std::size_t kMaxNames = 4;
  std::vector<std::string> datasets;
  for (std::string& name : store.list(path)) {
    if (!name.ends_with('/')) continue;
    name.pop_back();
    const std::string folder = path_in(path, name);
    if (seems_dataset(store, folder)) datasets.push_back(folder);
  }
  if (datasets.empty()) return "";
  std::string hint;
  for (std::size_t i = 0; i < std::min(datasets.size(), kMaxNames); ++i) {
    hint += (i == 0 ? ": did you mean " : ", ") + datasets[i];
  }
  return hint + (datasets.size() > kMaxNames ? fmt::format(" or one of {} more?", datasets.size() - kMaxNames) : "?");
}

}  // namespace

bool has_manifest(ByteStore& store, const std::string& folder) {
  try {
    store.size(path_in(folder, kManifestName), Links::Follow);
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::IoError) throw;
    return false;
  }
}

std::string path_in(const std::string& folder, std::string_view name) {
  std::string path = folder;
  if (!path.ends_with('/')) path.push_back('/');
  return path.append(name);
}

FolderListing list_folder(ByteStore& store, const std::string& path) {
  FolderListing listing;
  for (std::string& name : store.list(path)) {
    const bool is_folder = name.ends_with('/');
    if (is_folder) name.pop_back();
    if (name == kManifestName) listing.has_manifest = true;
    if (const std::optional<ShardId> shard = parse_shard_name(name)) {
      listing.shards.push_back(*shard);
    } else if (name == kRunLockName) {
      listing.has_run_lock = true;
    } else if (name.starts_with(kPartialPrefix)) {
      listing.leftovers.push_back(std::move(name));
    } else if (!is_folder && is_note(name)) {
      listing.notes.push_back(std::move(name));
    } else if (const auto generation = parse_features_name(name);
               is_folder && generation && has_manifest(store, path_in(path, name))) {
      listing.features.push_back(*generation);
    } else if (is_folder && !name.starts_with('.')) {
      listing.others.push_back(std::move(name));
    }
  }
  std::sort(listing.shards.begin(), listing.shards.end());
  std::sort(listing.leftovers.begin(), listing.leftovers.end());
  std::sort(listing.features.begin(), listing.features.end());
  std::sort(listing.others.begin(), listing.others.end());
  std::sort(listing.notes.begin(), listing.notes.end());
  return listing;
}

std::vector<std::uint64_t> FolderListing::numbers(std::uint64_t generation) const {
  std::vector<std::uint64_t> found;
  for (const ShardId& shard : shards) {
    if (shard.generation == generation) found.push_back(shard.number);
  }
  return found;
}

std::uint64_t unpublished_generation(ByteStore& store, const std::string& path, const FolderListing& listing) {
  std::uint64_t latest = 0;
  const auto see_folders = [&] {
    for (const ShardId& shard : listing.shards) latest = std::max(latest, shard.generation);
  };
  if (!listing.has_manifest) {
    see_folders();
    return latest;
  }
  try {
    for (const ShardInfo& shard : read_manifest(store, path).shards) {
      if (const std::optional<ShardId> id = parse_shard_name(shard.name)) latest = std::max(latest, id->generation);
    }
  } catch (const Error& error) {  // a damaged manifest does not tell what it named: nothing that is there is touched
    if (error.kind() == ErrorKind::IoError) throw;  // writers of one dataset must agree
    see_folders();
  }
  return latest + 1;
}

std::string describe_unfinished(ByteStore& store, const std::string& path, const FolderListing& listing) {
  if (listing.shards.empty() && listing.leftovers.empty() && !listing.has_run_lock) {
    return fmt::format("{}: no {}: not a dataset of penstock{}", path, kManifestName, hint_of_datasets_in(store, path));
  }
  std::string more;
  for (const std::uint64_t generation : listing.features) more += ", the folder " + features_name(generation);
  for (const std::string& note : listing.notes) more += ", the note " + note;
  if (listing.has_run_lock) more += fmt::format(", {} of a run at work or of one that was killed", kRunLockName);
  return fmt::format(
      "{}: an unfinished dataset: no {}, {} finished shard{}, {} unfinished{}: go on where it was begun (with "
      "--resume; in Python Writer(shard=…), then commit), or write it anew with overwrite",
      path, kManifestName, with_commas(listing.shards.size()), listing.shards.size() == 1 ? "" : "s",
      with_commas(listing.leftovers.size()), more);
}

std::string read_manifest_text(ByteStore& store, const std::string& path, Links links) {
  const std::uint64_t most = links == Links::BelowParent ? kMaxShardManifestBytes : kMaxManifestBytes;
  try {
    std::string whole;
    if (store.read_whole(path, most, whole)) {
      whole.reserve(whole.size() + kManifestTextPadding);
      return whole;
    }
    const std::uint64_t bytes = store.size(path, links);
    if (bytes > most) {
      raise(ErrorKind::Corruption, "{}: {} bytes, at most {} can be", path, with_commas(bytes), with_commas(most));
    }
    std::string text;
    text.reserve(bytes + kManifestTextPadding);
    advise_huge_pages(text.data(), text.capacity());
    text.resize(bytes);
    store.read_small(path, 0, std::as_writable_bytes(std::span(text)));
    return text;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::InvalidArgument) throw;
    raise(ErrorKind::Corruption, "{}", error.what());  // not a regular file
  }
}

Manifest read_manifest(ByteStore& store, const std::string& path) {
  const std::string file = path_in(path, kManifestName);
  std::string text;
  try {
    text = read_manifest_text(store, file, Links::BelowFolder);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::NotFound) throw;
    if (store.is_far()) {  // which need not list folders
      throw Error(ErrorKind::NotFound, fmt::format("{}: no dataset of penstock: {}", path, error.what()), ENOENT, path);
    }
    // list_folder says so if the folder itself is not there.
    throw Error(ErrorKind::NotFound, describe_unfinished(store, path, list_folder(store, path)), ENOENT, path);
  }
  return parse_manifest(std::move(text), file);
}

std::pair<Format, ShardInfo> read_shard_manifest(ByteStore& store, const std::string& path, const std::string& name) {
  const std::string file = path_in(path, name) + "/" + kShardManifestName;
  auto [format, shard] = parse_shard_manifest(read_manifest_text(store, file, Links::BelowParent), file);
  shard.name = name;
  return {std::move(format), std::move(shard)};
}

}  // namespace penstock::layout
