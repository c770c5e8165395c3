// Checks of metadata.index, metadata.directory and the entries' digests against what a shard's manifest says.
//
// Thread rule: free functions; any thread. What is wrong is told, with its file and byte; what cannot be read throws
// NotFound, IoError or Corruption.
#pragma once

#include "core/io/byte_store.h"
#include "layout/dataset/manifest.h"
#include "writer/shards/id_runs.h"

#include <cstdint>
#include <functional>
#include <string>

namespace penstock::writer {

/// Takes (file, byte, what is wrong there).
using TellProblem = std::function<void(const std::string&, std::uint64_t, const std::string&)>;

/// Spans and their directory in the compact layout. Everywhere `path` is the shard's folder, and `far` where it lies if
/// not on this machine.
void check_compact_index(const std::string& path, ByteStore* far, const layout::ShardInfo& info,
                         const TellProblem& tell);

/// Entries of opaque documents.
void check_opaque_index(const std::string& path, ByteStore* far, const layout::ShardInfo& info,
                        const TellProblem& tell);

/// Entries of the ids layout; they are added to `runs`, whose digest needs the stream as well.
void check_ids_index(const std::string& path, ByteStore* far, const layout::ShardInfo& info, IdRuns& runs,
                     const TellProblem& tell);

/// Tells of a digest that is not as the manifest says.
void compare_digests(const std::string& file, const std::string& what, const DigestBytes& seen, const DigestBytes& said,
                     const TellProblem& tell);

}  // namespace penstock::writer
