// File: where the bytes of a read lie, as a path that is composed when it is asked for, and how many there are.
//
// A dataset has up to four files a shard and tens of thousands of shards, of which a run opens some: a File is a few
// pointers into Paths, which all files of a dataset share. Files stay at one address for as long as they are read:
// reads point to them, and stores recognize them by it (ByteStore::forget). Values; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace penstock {

class ByteStore;

/// Tells whether a file was changed since it was looked at, as far as its number and time of change do; both 0: any
/// file will do.
struct FileStamp {
  std::uint64_t number = 0;      // inode
  std::int64_t modified_ns = 0;  // since 1970

  bool operator==(const FileStamp&) const = default;
};

/// The parts of many paths. Immutable once a File points into it; Files share the ownership.
struct Paths {
  std::string root;            // a folder; or the whole path of the only file
  std::string real_root;       // the same without symbolic links, where that is known; none of its files may leave it
  std::string folders;         // names of folders in it, each ended by '\0'
  ByteStore* store = nullptr;  // that they lie in; outlives the files
  FileStamp stamp = {};        // of the only file, where that matters
};

class File {
 public:
  File() = default;
  /// The file at `path` of a store.
  File(std::string path, std::uint64_t bytes, ByteStore* store = nullptr, FileStamp stamp = {})
      : bytes(bytes), paths_(std::make_shared<const Paths>(Paths{std::move(path), {}, {}, store, stamp})) {}
  /// The file root/folder/name. `folder` points into paths->folders; `name` is a constant of the program.
  File(std::shared_ptr<const Paths> paths, const char* folder, const char* name, std::uint64_t bytes) noexcept
      : bytes(bytes), paths_(std::move(paths)), folder_(folder), name_(name) {}

  /// Its location, composed anew: for opening it and for messages, not for each read.
  [[nodiscard]] std::string path() const {
    if (folder_ == nullptr) return paths_ == nullptr ? std::string() : paths_->root;
    std::string path = paths_->root;
    return path.append(1, '/').append(folder_).append(1, '/').append(name_);
  }

  /// Of a dataset's file: its folder without links, and where the file is in it if nothing there is a link; else empty.
  [[nodiscard]] std::string real_root() const { return folder_ == nullptr ? std::string() : paths_->real_root; }
  [[nodiscard]] std::string real_path() const {
    if (folder_ == nullptr || paths_->real_root.empty()) return {};
    std::string path = paths_->real_root;
    return path.append(1, '/').append(folder_).append(1, '/').append(name_);
  }

  /// Another file of the same folder; `name` is a constant of the program.
  [[nodiscard]] File beside(const char* name, std::uint64_t its_bytes) const noexcept {
    return {paths_, folder_, name, its_bytes};
  }

  /// What it must have when it is opened.
  [[nodiscard]] FileStamp stamp() const noexcept { return paths_ == nullptr ? FileStamp{} : paths_->stamp; }

  /// The store that it lies in, null if none was said.
  [[nodiscard]] ByteStore* store() const noexcept { return paths_ == nullptr ? nullptr : paths_->store; }

  /// Whether both are one file of one dataset, or copies of one File; a few comparisons of pointers. False for two that
  /// were made apart, even of the same path.
  friend bool operator==(const File&, const File&) = default;

  std::uint64_t bytes = 0;  // the exact size that the manifest states; checked when the file is opened

 private:
  std::shared_ptr<const Paths> paths_;
  const char* folder_ = nullptr;
  const char* name_ = nullptr;
};

}  // namespace penstock
