// TemporaryFolder: a folder of a test's own, which goes with it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace penstock::testing {

class TemporaryFolder {
 public:
  /// On disk, where files have page caches and direct reads.
  TemporaryFolder() : TemporaryFolder(std::filesystem::temp_directory_path()) {}
  /// In memory where that can be had: hundreds of fsyncs of a disk say no more and take a minute.
  static TemporaryFolder in_memory() {
    return TemporaryFolder(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// Of the folder, without links, or of what has this name in it.
  [[nodiscard]] std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path(name); }

 private:
  explicit TemporaryFolder(const std::filesystem::path& above) : path_((above / "penstock-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = std::filesystem::canonical(path_).string();
  }

  std::string path_;
};

}  // namespace penstock::testing
