// Run: a dataset's folder held for one run, from before it looks at what is there until it has published.
//
// Writers and commits that name the run work beside it; all others are refused. One thread at a time.
#pragma once

#include "writer/folder/run_lock.h"
#include "writer/folder/system.h"

#include <optional>
#include <string>

namespace penstock::writer {

class Run {
 public:
  /// Makes the folder if it is not there. Throws InvalidArgument where another run is at work, IoError.
  Run(const std::string& path, const std::string& run);
  ~Run() { close(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Ends the run; a folder that it made and that is empty is removed. Idempotent.
  void close() noexcept;

 private:
  const std::string path_;
  bool made_ = false;
  Descriptor folder_;
  std::optional<RunLock> lock_;
};

}  // namespace penstock::writer
