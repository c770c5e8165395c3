// Ways to read local files, and how many files a process may open meanwhile.
#pragma once

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "core/io/local/ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace penstock::testing {

inline std::unique_ptr<Channel> open_by(const LocalStore& store, Reader reader,
                                        ChannelMode mode = ChannelMode::MayWait) {
  return store.reading_by(reader)->open_channel(mode);
}

/// Why files of this folder are not read by it here; empty if they are.
inline std::optional<std::string> refusal_of(Reader reader, const std::string& folder) {
  if (reader != Reader::Uring && reader != Reader::Direct) return std::nullopt;
  if (const int why = Ring::refusal(); why != 0) return std::string("io_uring is refused here: ") + std::strerror(why);
  if (reader != Reader::Direct) return std::nullopt;
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT, 0600);
  if (fd < 0) return "this file system has no direct reads";
  ::close(fd);
  return std::nullopt;
}

inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Lowers the soft limit of open files while it lives.
class FileLimit {
 public:
  explicit FileLimit(rlim_t limit) {
    // UBSan checks that an Error is one by reading its type through a pipe, once for each type; where no descriptor is
    // left it reports what it could not read. So an Error is used before.
    const std::unique_ptr<Error> error = std::make_unique<Error>(ErrorKind::IoError, "used while descriptors are left");
    EXPECT_EQ(error->error_number(), 0);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lowered{limit, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &lowered);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  [[nodiscard]] static rlim_t now() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }
  [[nodiscard]] rlim_t hard() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

}  // namespace penstock::testing
