#include "writer/verify/verify_index.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "writer/files/input_file.h"
#include "writer/shards/field_digests.h"

#include <utility>

namespace penstock::writer {
namespace {

using layout::CompactIndexEntry;
using layout::ShardInfo;

DigestBytes entry_digest(InputFile& data, std::uint64_t bytes) {
  Digest digest;
  data.take(bytes, [&](std::span<const std::byte> part) { digest.update(part); });
  return digest.bytes();
}

void check_directory(InputFile& directory, std::uint64_t& next, std::uint64_t end, std::uint64_t span,
                     const TellProblem& tell) {
  for (; next < end; next += layout::kDirectoryStride) {
    const std::uint64_t offset = directory.offset();
    const auto said = directory.next_value<std::uint64_t>();
    if (said == span) continue;
    tell(directory.path(), offset, fmt::format("record {} is said to lie in span {}, it is in {}", next, said, span));
  }
}

// Walks the offsets of an index of entries; take(bytes) for each. False where they are not in order.
template <typename Take>
bool walk_offsets(InputFile& index, std::uint64_t entries, std::uint64_t data_bytes, Take&& take) {
  auto here = index.next_value<std::uint64_t>();
  if (here != 0) return false;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const auto next = index.next_value<std::uint64_t>();
    if (next < here || next > data_bytes) return false;
    take(next - here);
    here = next;
  }
  return here == data_bytes;
}

}  // namespace

void compare_digests(const std::string& file, const std::string& what, const DigestBytes& seen, const DigestBytes& said,
                     const TellProblem& tell) {
  if (seen == said) return;
  tell(file, 0, fmt::format("digest of {} is {}, the manifest says {}", what, hex_of(seen), hex_of(said)));
}

void check_compact_index(const std::string& path, ByteStore* far, const ShardInfo& info, const TellProblem& tell) {
  InputFile index(path + "/" + layout::kIndexName, (info.spans + 1) * sizeof(CompactIndexEntry), far);
  InputFile data(path + "/" + layout::kDataName, info.data_bytes, far);
  InputFile directory(path + "/" + layout::kDirectoryName, layout::directory_entries(info.records) * 8, far);
  layout::SpanDigest digest;
  std::uint64_t next_multiple = 0;
  auto here = index.next_value<CompactIndexEntry>();
  if (here.first_record != 0 || here.byte_offset != 0) tell(index.path(), 0, "does not begin with (0, 0)");
  for (std::uint64_t i = 0; i < info.spans; ++i) {
    const std::uint64_t offset = index.offset();
    const auto next = index.next_value<CompactIndexEntry>();
    if (next.first_record < here.first_record || next.byte_offset < here.byte_offset ||
        next.first_record > info.records || next.byte_offset > info.data_bytes) {
      tell(index.path(), offset,
           fmt::format("entry ({}, {}) after ({}, {}) in a shard of {} records and {} bytes of entries",
                       next.first_record, next.byte_offset, here.first_record, here.byte_offset, info.records,
                       info.data_bytes));
      return;  // nothing after it can be placed
    }
    const std::uint64_t bytes = next.byte_offset - here.byte_offset;
    digest.add(next.first_record - here.first_record, bytes, entry_digest(data, bytes));
    check_directory(directory, next_multiple, next.first_record, i, tell);
    here = next;
  }
  if (here.first_record != info.records || here.byte_offset != info.data_bytes) {
    tell(index.path(), info.spans * sizeof(here),
         fmt::format("ends with ({}, {}), expected ({}, {})", here.first_record, here.byte_offset, info.records,
                     info.data_bytes));
    return;
  }
  const std::uint64_t offset = directory.offset();
  if (const auto last = directory.next_value<std::uint64_t>(); last != info.spans) {
    tell(directory.path(), offset, fmt::format("ends with {}, expected {} spans", last, info.spans));
  }
  compare_digests(data.path(), "the spans", digest.bytes(), *info.span_digest, tell);
}

void check_opaque_index(const std::string& path, ByteStore* far, const ShardInfo& info, const TellProblem& tell) {
  InputFile index(path + "/" + layout::kIndexName, (info.entries + 1) * 8, far);
  InputFile data(path + "/" + layout::kDataName, info.data_bytes, far);
  layout::SpanDigest digest;
  const auto take = [&](std::uint64_t bytes) { digest.add(0, bytes, entry_digest(data, bytes)); };
  if (walk_offsets(index, info.entries, info.data_bytes, take)) {
    compare_digests(data.path(), "the entries", digest.bytes(), *info.span_digest, tell);
  } else {
    tell(index.path(), index.offset() - 8, "byte offsets that are not in order from 0 to the size of metadata.bin");
  }
}

void check_ids_index(const std::string& path, ByteStore* far, const ShardInfo& info, IdRuns& runs,
                     const TellProblem& tell) {
  InputFile index(path + "/" + layout::kIndexName, (info.entries + 1) * 8, far);
  InputFile data(path + "/" + layout::kDataName, info.data_bytes, far);
  const auto take = [&](std::uint64_t bytes) { runs.add_entry(bytes, entry_digest(data, bytes)); };
  if (!walk_offsets(index, info.entries, info.data_bytes, take)) {
    tell(index.path(), index.offset() - 8, "byte offsets that are not in order from 0 to the size of metadata.bin");
  }
}

}  // namespace penstock::writer
