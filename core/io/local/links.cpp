#include "core/io/local/links.h"

#include "core/base/error.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>

namespace penstock {
namespace {

constexpr const char* kSnapshots = "/snapshots/";

bool lies_below(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) &&
         (folder.ends_with('/') || path[folder.size()] == '/');
}

void check(const std::string& path, const std::string& target, const std::string& real_root) {
  if (lies_below(target, real_root)) return;
  const std::size_t snapshots = (real_root + "/").rfind(kSnapshots);
  if (snapshots != std::string::npos && lies_below(target, real_root.substr(0, snapshots) + "/blobs")) return;
  raise(
      ErrorKind::Corruption,
      "{}: a symbolic link out of the dataset, to {}: put the file itself there (cp -L), or open a copy without links",
      path, target);
}

}  // namespace

std::string resolve_links(const std::string& path) {
  std::array<char, PATH_MAX> text{};
  if (::realpath(path.c_str(), text.data()) == nullptr) raise_system(errno, "cannot open", path);
  return text.data();
}

void check_links(const std::string& path, Links links) {
  if (links == Links::Follow) return;
  // By its name: a folder on the way may be a link itself.
  std::filesystem::path root = std::filesystem::path(path).parent_path();
  if (links == Links::BelowParent) root = root.parent_path();
  check(path, resolve_links(path), resolve_links(root.empty() ? "." : root.string()));
}

void check_links(int fd, const File& file) {
  const std::string expected = file.real_path();
  if (expected.empty()) return;
  std::array<char, PATH_MAX> text{};
  const ssize_t bytes = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), text.data(), text.size());
  if (bytes > 0 && std::string_view(text.data(), static_cast<std::size_t>(bytes)) == expected) return;
  check(file.path(), resolve_links(file.path()), file.real_root());  // without /proc the path itself is asked
}

}  // namespace penstock
