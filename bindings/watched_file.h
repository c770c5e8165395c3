// WatchedFile: an open file that is mapped, looked at before its bytes are. Any thread.
#pragma once

#include "core/io/file.h"

#include <cstdint>
#include <string>

namespace penstock::bindings {

class WatchedFile {
 public:
  /// Keeps a descriptor of its own. Throws IoError.
  WatchedFile(int fd, std::string path);
  ~WatchedFile();
  WatchedFile(const WatchedFile&) = delete;
  WatchedFile& operator=(const WatchedFile&) = delete;

  /// Throws ChangedFile where it has another size or time of modification than when this was made, so that no page that
  /// lies beyond its end is touched.
  void check_same() const;

 private:
  struct State {
    FileStamp stamp;
    std::int64_t bytes = 0;
    bool operator==(const State&) const = default;
  };
  [[nodiscard]] State look(int fd) const;

  const std::string path_;
  const State made_;
  const int fd_;
};

}  // namespace penstock::bindings
