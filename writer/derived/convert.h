// convert: the same dataset in the other layout of spans.
#pragma once

#include <string>

namespace penstock::writer {

/// Writes the stream dataset at `path` to `out` in `layout` ("compact", "ids"), shard by shard; with `overwrite` in the
/// place of a dataset that is there, or of what a run left that was killed. The fingerprint, which
/// is returned, stays. To ids: each span gets an id of its own; throws InvalidArgument for an empty span. To compact:
/// an entry's bytes are repeated for each run of its id. Throws also Corruption, NotFound, IoError. Any thread.
std::string convert(const std::string& path, const std::string& out, const std::string& layout, bool overwrite = false);

}  // namespace penstock::writer
