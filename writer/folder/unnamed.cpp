#include "writer/folder/unnamed.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"

#include <algorithm>
#include <set>
#include <utility>

namespace penstock::writer {
namespace {

// "00000, 00001, 00002, 00003 and 12 more"
std::string list_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNames); ++i) text += (i == 0 ? "" : ", ") + excerpt(names[i]);
  return names.size() > kMaxNames ? fmt::format("{} and {} more", text, with_commas(names.size() - kMaxNames)) : text;
}

void describe(std::vector<std::string>& texts, const std::string& path, const std::vector<std::string>& names,
              const std::string& what) {
  if (names.empty()) return;
  texts.push_back(fmt::format("{}: {} does not name {}: {}", path, layout::kManifestName, list_names(names), what));
}

}  // namespace

std::vector<std::string> describe_unnamed(const std::string& path, const layout::Manifest& manifest) {
  LocalStore files;
  layout::FolderListing listing = layout::list_folder(files, path);
  const std::uint64_t next = layout::unpublished_generation(files, path, listing);
  std::set<std::string> named;
  for (const layout::ShardInfo& shard : manifest.shards) named.insert(shard.name);
  if (manifest.features) named.insert(manifest.features->folder);
  std::vector<std::string> coming;
  std::vector<std::string> left;
  for (const layout::ShardId& id : listing.shards) {
    std::string name = layout::shard_name(id.number, id.generation);
    if (!named.contains(name)) (id.generation == next ? coming : left).push_back(std::move(name));
  }
  for (const std::uint64_t generation : listing.features) {
    std::string name = layout::features_name(generation);
    if (!named.contains(name)) (generation == next ? coming : left).push_back(std::move(name));
  }
  std::vector<std::string> texts;
  describe(texts, path, coming,
           "finished shards that are to replace this dataset: go on where they were begun (with --resume "
           "--overwrite; in Python commit with overwrite), or remove them (remove_shards with overwrite)");
  describe(texts, path, left,
           "shards that are no part of this dataset, left by a writer that was stopped while it replaced another: "
           "nothing reads them; remove them, or the next writer with overwrite does");
  describe(texts, path, listing.leftovers,
           "unfinished, of a writer at work or of one that was killed: if none is at work, remove them, or the next "
           "writer with overwrite does (those of other machines: `penstock write --clean`)");
  std::erase_if(listing.others, [&](const std::string& name) { return named.contains(name); });
  describe(texts, path, listing.others, "folders that penstock did not make, which nothing here reads");
  describe(
      texts, path, listing.notes,
      "notes of a run at work or of one that was stopped: going on with it reads and removes them; if that is done, "
      "nothing reads them");
  if (listing.has_run_lock) {
    describe(texts, path, {layout::kRunLockName},
             "the lock of a run at work or of one that was killed: the next one removes it");
  }
  return texts;
}

}  // namespace penstock::writer
