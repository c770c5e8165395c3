// verify: reads all of a dataset and names everything that is not as its manifest says.
//
// Thread rule: free function; any thread. Memory is a few buffers (and 24 bytes an entry of a shard in the ids layout).
#pragma once

#include "core/io/byte_store.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penstock::writer {

struct VerifyReport {
  std::uint64_t shards = 0;
  std::uint64_t records = 0;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  // read and checked
  std::string fingerprint;
  std::vector<std::string> problems;  // each with its file and byte; empty: everything is as it should be
  std::uint64_t unlisted = 0;         // problems beyond the first 1,000
  std::vector<std::string> notices;   // folders that the manifest does not name, with what to do; no problems

  [[nodiscard]] bool ok() const noexcept { return problems.empty(); }
};

/// Checks the manifest, and of each shard: files and sizes, CRC32C of every block, digests of fields and spans, index
/// and directory, ids, shard.json. Does not stop at a problem. Names folders that are no part of the dataset.
/// `progress(done, total)` is called about every 8 MiB, may be empty, and may throw to stop. Throws NotFound where
/// there is no dataset; what is wrong with it is in the report. `far` is where the dataset lies, if it is not on this
/// machine: it is not listed, so there are no notices.
VerifyReport verify(const std::string& path, const std::function<void(std::uint64_t, std::uint64_t)>& progress,
                    ByteStore* far = nullptr);

}  // namespace penstock::writer
