// RunLock: which run is at work in a dataset's folder. The processes of one run hold it together; no other run may.
//
// A lock by flock() on the file .partial-run, which names the run; the last holder removes it, and of holders that were
// killed only the file stays, which the next run takes over. Where a file system has no flock, runs are not kept apart;
// where its locks are local to a node, those of one node are. One owner, one thread at a time; a forked child's copy
// does nothing but close its descriptor.
#pragma once

#include "writer/folder/system.h"

#include <sys/types.h>

#include <string>
#include <string_view>

namespace penstock::writer {

/// The run of those who name none: they may work together.
inline constexpr const char* kUnnamedRun = "";

/// "<random hex digits>": a run of its own.
std::string unique_run();

/// Throws InvalidArgument unless `run` is empty or 1 to 64 ASCII letters, digits, '.', '_' and '-'.
void check_run(std::string_view run);

class RunLock {
 public:
  /// Takes the lock in the folder `fd`, shown as `path`. Throws InvalidArgument where another run is at work, IoError.
  RunLock(int fd, std::string path, std::string run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// Removes the lock's file, before a dataset is published that is to have no trace of it. Others of the run keep what
  /// they hold; a later run makes another file.
  void remove_file() noexcept;

 private:
  bool try_to_hold();
  void name_run() const;
  [[nodiscard]] std::string shown() const;
  [[nodiscard]] bool is_still_there() const;
  [[nodiscard]] std::string holder() const;
  void refuse_other() const;

  const int folder_;
  const std::string path_;
  const std::string run_;
  const pid_t owner_;
  Descriptor file_;
};

}  // namespace penstock::writer
