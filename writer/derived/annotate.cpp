#include "writer/derived/annotate.h"

#include "core/base/checked.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/derived/combine.h"
#include "writer/files/copy_file.h"
#include "writer/folder/dataset_folder.h"
#include "writer/shards/column_reader.h"
#include "writer/shards/column_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace penstock::writer {
namespace {

using layout::Format;
using layout::ShardInfo;

constexpr const char* kSkippedName = "skipped.jsonl";  // beside the shards: what `penstock write` left out

template <typename... Arguments>
[[noreturn]] void refuse(const std::string& path, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  raise(ErrorKind::InvalidArgument, "{}: {}", path, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// Where each column of the result comes from: `added` if it is new, else the column of this number.
struct Origin {
  const NewColumn* added = nullptr;
  std::size_t kept = 0;
};

class Annotation {
 public:
  Annotation(const std::string& path, const std::vector<NewColumn>& added, const std::vector<std::string>& removed);

  [[nodiscard]] std::size_t shards() const noexcept { return old_.shards.size(); }
  void rewrite(std::size_t number);
  std::string publish();
  void abort() noexcept { folder_.abort(); }

 private:
  void choose(const std::vector<NewColumn>& added, const std::vector<std::string>& removed);
  void check(const NewColumn& column, std::uint64_t entries) const;
  [[nodiscard]] std::string task_of(LocalStore& files, const std::string& shard) const;
  ShardInfo write(const std::string& from, const ShardInfo& shard, int at, const std::string& path) const;
  [[nodiscard]] std::shared_ptr<const layout::ShardColumns> write_columns(const std::string& from,
                                                                          const ShardInfo& shard, int at,
                                                                          const std::string& path) const;

  std::string path_;
  DatasetFolder folder_;
  layout::Manifest old_;
  layout::Manifest new_;
  std::vector<Origin> origins_;  // of the result's columns
  std::uint64_t first_ = 0;      // entry of the dataset that the next shard begins with
};

Annotation::Annotation(const std::string& path, const std::vector<NewColumn>& added,
                       const std::vector<std::string>& removed)
    : path_(path), folder_(path, Access::Whole, true) {
  LocalStore files;
  old_ = layout::read_manifest(files, path);
  new_.format = old_.format;
  new_.tokenizer_json = old_.tokenizer_json;
  choose(added, removed);
  layout::check_format(new_.format);
  std::uint64_t entries = 0;
  for (const ShardInfo& shard : old_.shards) entries = checked_add(entries, shard.entries, path.c_str());
  for (const NewColumn& column : added) check(column, entries);
}

void Annotation::choose(const std::vector<NewColumn>& added, const std::vector<std::string>& removed) {
  const ValueTypes& there = old_.format.columns;
  const auto find = [&](const std::string& name) {
    const auto found =
        std::find_if(there.begin(), there.end(), [&](const ValueType& type) { return type.name == name; });
    return static_cast<std::size_t>(found - there.begin());
  };
  for (std::size_t c = 0; c < there.size(); ++c) origins_.push_back({nullptr, c});
  for (const NewColumn& column : added) {
    const std::size_t at = find(column.type.name);
    if (at == there.size())
      origins_.push_back({&column, 0});
    else
      origins_[at].added = &column;
  }
  for (const std::string& name : removed) {
    const std::size_t at = find(name);
    if (at == there.size()) refuse(path_, "there is no column {} to be removed", excerpt(name));
    const auto is_it = [&](const Origin& origin) { return origin.added == nullptr && origin.kept == at; };
    origins_.erase(std::remove_if(origins_.begin(), origins_.end(), is_it), origins_.end());
  }
  new_.format.columns.clear();
  for (const Origin& origin : origins_) {
    new_.format.columns.push_back(origin.added != nullptr ? origin.added->type : there[origin.kept]);
  }
  // What a reader would refuse.
  if (new_.format.has_columns()) {
    new_.format.columns = layout::parse_column_types(layout::column_types_json(new_.format.columns));
  }
}

void Annotation::check(const NewColumn& column, std::uint64_t entries) const {
  const std::uint64_t bytes = checked_mul(entries, column.type.bytes(), path_.c_str(), ErrorKind::InvalidArgument);
  const std::string name = excerpt(column.type.name);
  if (column.values.size() != bytes) {
    const bool left_out = ::access(layout::path_in(path_, kSkippedName).c_str(), F_OK) == 0;
    refuse(path_, "column {}: {} values, the dataset has {} documents{}", name,
           with_commas(column.values.size() / column.type.bytes()), with_commas(entries),
           left_out ? fmt::format(": {} lists those that `penstock write` left out", kSkippedName) : "");
  }
  layout::check_categories(column.type.name, column.categories);
  if (!column.type.is_category) return;
  for (std::uint64_t i = 0; i < entries; ++i) {
    std::int32_t code = 0;
    std::memcpy(&code, column.values.data() + i * sizeof(code), sizeof(code));
    if (code >= -1 && (code < 0 || static_cast<std::size_t>(code) < column.categories.size())) continue;
    refuse(path_, "column {}: document {} has the code {}, there are {} categories", name, with_commas(i), code,
           column.categories.size());
  }
}

std::shared_ptr<const layout::ShardColumns> Annotation::write_columns(const std::string& from, const ShardInfo& shard,
                                                                      int at, const std::string& path) const {
  ColumnReader reader(from, old_.format, shard);
  std::vector<layout::Categories> names;
  std::vector<layout::Categories> first;
  for (const Origin& origin : origins_) {
    names.push_back(origin.added != nullptr ? origin.added->categories : reader.categories()[origin.kept]);
    first.push_back(origin.added != nullptr && !origin.added->declared ? layout::Categories() : names.back());
  }
  ColumnWriter writer(at, path, new_.format.columns, first);
  ColumnValues values(origins_.size());
  for (std::uint64_t i = 0; i < shard.entries; ++i) {
    const ColumnValues& kept = reader.values(i);
    for (std::size_t c = 0; c < origins_.size(); ++c) {
      const NewColumn* const added = origins_[c].added;
      const std::uint64_t bytes = new_.format.columns[c].bytes();
      values[c] = added != nullptr ? added->values.subspan((first_ + i) * bytes, bytes) : kept[origins_[c].kept];
    }
    writer.add(values, 0, names);
  }
  return writer.finish();
}

// Other writers may have no shard.json.
std::string Annotation::task_of(LocalStore& files, const std::string& shard) const {
  try {
    return layout::read_shard_manifest(files, path_, shard).second.task_json;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::NotFound) throw;
    return "null";
  }
}

ShardInfo Annotation::write(const std::string& from, const ShardInfo& shard, int at, const std::string& path) const {
  Format content = old_.format;
  content.columns.clear();
  copy_files(from, layout::shard_files(content, shard), at, path);
  ShardInfo info = shard;
  LocalStore files;
  info.task_json = task_of(files, shard.name);
  info.columns = new_.format.has_columns() ? write_columns(from, shard, at, path) : nullptr;
  const std::string text = layout::write_shard_manifest(new_.format, info);
  const std::string shown = path + "/" + layout::kShardManifestName;
  Descriptor file = create_file(at, layout::kShardManifestName, shown);
  write_all(file.get(), std::as_bytes(std::span(text)), 0, shown);
  sync_file(file.get(), shown);
  file.close(shown);
  return info;
}

void Annotation::rewrite(std::size_t number) {
  const ShardInfo& shard = old_.shards[number];
  const std::string partial = folder_.make_partial(number);
  const std::string path = layout::path_in(path_, partial);
  try {
    const Descriptor at = open_folder(folder_.fd(), partial, path);
    ShardInfo info = write(layout::path_in(path_, shard.name), shard, at.get(), path);
    sync_folder(at.get(), path);
    folder_.publish_shard(partial, number);
    info.name = folder_.shard_name(number);
    new_.shards.push_back(std::move(info));
  } catch (...) {
    remove_folder(folder_.fd(), partial);
    throw;
  }
  first_ += shard.entries;
}

std::string Annotation::publish() {
  if (old_.features) new_.features = copy_features(path_, *old_.features, folder_);
  folder_.publish_manifest(new_);
  return layout::fingerprint_of(new_.format, new_.shards);
}

}  // namespace

std::string annotate(const std::string& path, const std::vector<NewColumn>& added,
                     const std::vector<std::string>& removed,
                     const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  LocalStore files;
  layout::read_manifest(files, path);  // before a folder is made, or one is cleared that has no dataset
  Annotation annotation(path, added, removed);
  try {
    for (std::size_t i = 0; i < annotation.shards(); ++i) {
      annotation.rewrite(i);
      if (progress) progress(i + 1, annotation.shards());
    }
    return annotation.publish();
  } catch (...) {
    annotation.abort();
    throw;
  }
}

}  // namespace penstock::writer
