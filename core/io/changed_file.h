// ChangedFile: the error of a file that is another one, or has other bytes, than when it was opened.
//
// A type of its own, since a loader then delivers nothing that it has read ahead: the change is seen some time after it
// was made.
#pragma once

#include "core/base/error.h"

#include <string>

namespace penstock {

class ChangedFile final : public Error {
 public:
  explicit ChangedFile(const std::string& path)
      : Error(ErrorKind::Corruption, path + ": changed since it was opened: open it anew") {}
};

}  // namespace penstock
