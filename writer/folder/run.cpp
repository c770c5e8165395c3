#include "writer/folder/run.h"

#include "writer/folder/make_folder.h"

#include <fcntl.h>
#include <unistd.h>

namespace penstock::writer {

Run::Run(const std::string& path, const std::string& run) : path_(path) {
  check_run(run);
  made_ = make_folder(path_);
  try {
    if (made_) sync_parent(path_);
    folder_ = open_folder(AT_FDCWD, path_, path_);
    lock_.emplace(folder_.get(), path_, run);
  } catch (...) {
    close();
    throw;
  }
}

void Run::close() noexcept {
  lock_.reset();
  folder_.reset();
  if (made_) ::rmdir(path_.c_str());  // only if nothing is in it
  made_ = false;
}

}  // namespace penstock::writer
