#include "writer/folder/make_folder.h"

#include "core/base/error.h"
#include "writer/folder/system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace penstock::writer {
namespace {

std::string parent_of(const std::string& path) {
  const std::filesystem::path absolute = std::filesystem::absolute(path + "/.").parent_path();
  return absolute.parent_path().string();
}

}  // namespace

void sync_parent(const std::string& path) {
  const std::string parent = parent_of(path);
  const Descriptor folder = open_folder(AT_FDCWD, parent, parent);
  sync_folder(folder.get(), parent);
}

void sync_above(const std::string& path) {
  std::filesystem::path above = std::filesystem::absolute(path + "/.").parent_path();  // itself
  while (above.has_relative_path()) {
    above = above.parent_path();
    const Descriptor folder(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() < 0 || ::fsync(folder.get()) == 0) continue;
    if (errno == EIO || errno == ENOSPC || errno == EDQUOT) {
      raise_system(errno, fmt::format("fsync of the folder {} above it", above.string()), path);
    }
  }
}

// A folder that lasts in one that does not is lost with it.
bool make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  if (errno == ENOENT) {
    if (const std::string parent = parent_of(path); make_folder(parent)) sync_parent(parent);
    if (::mkdir(path.c_str(), 0777) == 0) return true;
  }
  if (errno == EEXIST) return false;
  raise_system(errno, "create folder", path);
}

}  // namespace penstock::writer
