// OpenFile: a local file that is open, as a descriptor or as a mapping, checked to be what the manifest says.
#pragma once

#include "core/io/read.h"

#include <cstddef>
#include <cstdint>

namespace penstock {

/// How a file's bytes are got at: through the page cache, past it, or as memory.
enum class Access { Buffered, Direct, Mapped };

/// Copies mean the same file; who has the last one closes it.
struct OpenFile {
  int fd = -1;                       // none of a mapping
  const std::byte* bytes = nullptr;  // of a mapping; not null even if the file is empty
  std::uint64_t size = 0;            // of a mapping
  bool tells = false;                // of a mapping: mincore(2) says which pages are in memory; else that all are
  FileStamp stamp = {};              // that it had when it was opened

  explicit operator bool() const noexcept { return fd >= 0 || bytes != nullptr; }
};

/// Opens `file` to be read at random. Empty, with errno, where the process or the system has no descriptor left, or no
/// room for one more mapping. Throws NotFound, IoError; Corruption if it is not a regular file of exactly file.bytes,
/// or has another stamp than file.stamp() (ChangedFile).
OpenFile open_file(const File& file, Access access);

void close_file(const OpenFile& file) noexcept;

/// Whether there is another file where `file` was opened, by a stat of its path: of another inode, size or time of
/// change. False where nothing is there: what is open stays what it was. docs/decisions.md, "A file that changes under
/// a loader", says why links and modes are no change.
bool is_another(const File& file, const FileStamp& opened) noexcept;

}  // namespace penstock
