#include "writer/shuffle/shuffle_options.h"

#include "core/base/error.h"

namespace penstock::writer {

void check_shard_bytes(const ShuffleOptions& options) {
  if (options.shard_bytes != 0) return;
  raise(ErrorKind::InvalidArgument, "a shard size of 0 bytes, expected at least 1");
}

}  // namespace penstock::writer
