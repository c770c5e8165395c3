#include "writer/verify.h"

#include "core/crc32c.h"
#include "core/error.h"
#include "layout/folder.h"
#include "layout/format.h"
#include "writer/field_digests.h"
#include "writer/id_runs.h"
#include "writer/input_file.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace penstock::writer {
namespace {

using layout::CompactIndexEntry;
using layout::Format;
using layout::kCrcBlockBytes;
using layout::ShardInfo;

constexpr std::size_t kMaxProblems = 1000;
constexpr std::uint64_t kProgressBytes = 8U << 20;

using Consume = std::function<void(std::span<const std::byte>)>;
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

layout::DigestBytes entry_digest(InputFile& data, std::uint64_t bytes) {
  layout::Digest digest;
  data.take(bytes, [&](std::span<const std::byte> part) { digest.update(part); });
  return digest.bytes();
}

class Verifier {
 public:
  Verifier(VerifyReport& report, const Progress& progress) : report_(report), progress_(progress) {}

  void run(const std::string& path);

 private:
  void shard(const std::string& path, const Format& format, const ShardInfo& info);
  void shard_manifest(const std::string& path, const Format& format, const ShardInfo& info);
  void compact_spans(const std::string& path, const ShardInfo& info);
  void compact_directory(InputFile& directory, std::uint64_t& next, std::uint64_t end, std::uint64_t span);
  void opaque_spans(const std::string& path, const ShardInfo& info);
  void id_entries(const std::string& path, const ShardInfo& info, IdRuns& runs);
  void stream(const std::string& path, const Format& format, const ShardInfo& info, IdRuns* runs);
  void scan(const std::string& path, std::uint64_t bytes, const Consume& consume);
  void compare(const std::string& file, const std::string& what, const std::string& seen, const std::string& said);
  void problem(const std::string& file, std::uint64_t offset, const std::string& message);
  void add(std::string text);
  void passed(std::uint64_t bytes);
  template <typename Action>
  bool guarded(Action&& action);

  VerifyReport& report_;
  const Progress& progress_;
  std::uint64_t total_ = 0;
  std::uint64_t told_ = 0;
};

void Verifier::add(std::string text) {
  if (report_.problems.size() >= kMaxProblems) {
    ++report_.unlisted;
    return;
  }
  report_.problems.push_back(std::move(text));
}

void Verifier::problem(const std::string& file, std::uint64_t offset, const std::string& message) {
  add(fmt::format("{}: at byte {}: {}", file, with_commas(offset), message));
}

void Verifier::passed(std::uint64_t bytes) {
  report_.bytes += bytes;
  if (!progress_ || report_.bytes - told_ < kProgressBytes) return;
  told_ = report_.bytes;
  progress_(report_.bytes, total_);
}

// What one check throws is a problem; the other checks go on. What `progress` throws is no Error and stops.
template <typename Action>
bool Verifier::guarded(Action&& action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    add(error.what());  // which names the file
    return false;
  }
}

void Verifier::compare(const std::string& file, const std::string& what, const std::string& seen,
                       const std::string& said) {
  if (seen != said) problem(file, 0, fmt::format("digest of {} is {}, the manifest says {}", what, seen, said));
}

// All blocks against their CRCs; consecutive bad ones are one problem.
void Verifier::scan(const std::string& path, std::uint64_t bytes, const Consume& consume) {
  InputFile file(path, bytes);
  std::optional<InputFile> crcs;
  guarded([&] { crcs.emplace(path + layout::kCrcSuffix, layout::crc_bytes(bytes)); });
  constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t bad = kNone;  // where the bad blocks under way begin
  const auto end_bad = [&](std::uint64_t end) {
    if (bad != kNone) problem(path, bad, fmt::format("bytes {} to {} do not have their CRC32C", bad, end));
    bad = kNone;
  };
  while (file.offset() < bytes) {
    const std::uint64_t begin = file.offset();
    // InputFile's buffer is a multiple of the block, so that a block is never given in two parts.
    const std::span<const std::byte> part = file.next(bytes);
    for (std::uint64_t at = 0; at < part.size() && crcs; at += kCrcBlockBytes) {
      const auto block = part.subspan(at, std::min<std::uint64_t>(kCrcBlockBytes, part.size() - at));
      if (crc32c(block) == crcs->next_value<std::uint32_t>()) {
        end_bad(begin + at);
      } else if (bad == kNone) {
        bad = begin + at;
      }
    }
    if (consume) consume(part);
    passed(part.size());
  }
  end_bad(bytes);
}

void Verifier::stream(const std::string& path, const Format& format, const ShardInfo& info, IdRuns* runs) {
  const std::uint64_t record_bytes = format.stored_record_bytes();
  FieldDigests digests(format.schema, record_bytes);
  std::vector<std::byte> held;  // a record may be cut by the end of a buffer
  std::uint64_t taken = 0;      // records
  bool ids_fine = true;
  const auto take = [&](std::span<const std::byte> records) {
    digests.update(records);
    if (runs != nullptr && ids_fine) {
      if (const auto bad = runs->update(records, record_bytes)) {
        ids_fine = false;
        problem(path, (taken + *bad + 1) * record_bytes - layout::kIdBytes,
                fmt::format("the metadata_id of record {} is beyond the {} entries", taken + *bad, runs->entries()));
      }
    }
    taken += records.size() / record_bytes;
  };
  scan(path, info.records * record_bytes, [&](std::span<const std::byte> part) {
    if (!held.empty()) {
      const std::size_t missing = std::min(part.size(), record_bytes - held.size());
      held.insert(held.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(missing));
      part = part.subspan(missing);
      if (held.size() < record_bytes) return;
      take(held);
      held.clear();
    }
    const std::size_t whole = part.size() / record_bytes * record_bytes;
    if (whole != 0) take(part.first(whole));
    held.assign(part.begin() + static_cast<std::ptrdiff_t>(whole), part.end());
  });
  const std::vector<std::string> seen = digests.hex();
  for (std::size_t i = 0; i < seen.size(); ++i) {
    compare(path, "field " + format.schema.leaves()[i].name, seen[i], info.field_digests[i]);
  }
  if (runs == nullptr || !ids_fine) return;
  runs->finish();
  compare(path, "its spans", runs->hex(), info.span_digest);
  if (runs->spans() != info.spans) {
    problem(path, 0, fmt::format("{} spans, the manifest says {}", runs->spans(), info.spans));
  }
}

void Verifier::compact_directory(InputFile& directory, std::uint64_t& next, std::uint64_t end, std::uint64_t span) {
  for (; next < end; next += layout::kDirectoryStride) {
    const std::uint64_t offset = directory.offset();
    const auto said = directory.next_value<std::uint64_t>();
    if (said == span) continue;
    problem(directory.path(), offset,
            fmt::format("record {} is said to lie in span {}, it is in {}", next, said, span));
  }
}

void Verifier::compact_spans(const std::string& path, const ShardInfo& info) {
  InputFile index(path + "/" + layout::kIndexName, (info.spans + 1) * sizeof(CompactIndexEntry));
  InputFile data(path + "/" + layout::kDataName, info.data_bytes);
  InputFile directory(path + "/" + layout::kDirectoryName, layout::directory_entries(info.records) * 8);
  layout::SpanDigest digest;
  std::uint64_t next_multiple = 0;
  auto here = index.next_value<CompactIndexEntry>();
  if (here.first_record != 0 || here.byte_offset != 0) problem(index.path(), 0, "does not begin with (0, 0)");
  for (std::uint64_t i = 0; i < info.spans; ++i) {
    const std::uint64_t offset = index.offset();
    const auto next = index.next_value<CompactIndexEntry>();
    if (next.first_record < here.first_record || next.byte_offset < here.byte_offset ||
        next.first_record > info.records || next.byte_offset > info.data_bytes) {
      problem(index.path(), offset,
              fmt::format("entry ({}, {}) after ({}, {}) in a shard of {} records and {} bytes of entries",
                          next.first_record, next.byte_offset, here.first_record, here.byte_offset, info.records,
                          info.data_bytes));
      return;  // nothing after it can be placed
    }
    const std::uint64_t bytes = next.byte_offset - here.byte_offset;
    digest.add(next.first_record - here.first_record, bytes, entry_digest(data, bytes));
    compact_directory(directory, next_multiple, next.first_record, i);
    here = next;
  }
  if (here.first_record != info.records || here.byte_offset != info.data_bytes) {
    problem(index.path(), info.spans * sizeof(here),
            fmt::format("ends with ({}, {}), expected ({}, {})", here.first_record, here.byte_offset, info.records,
                        info.data_bytes));
    return;
  }
  const std::uint64_t offset = directory.offset();
  if (const auto last = directory.next_value<std::uint64_t>(); last != info.spans) {
    problem(directory.path(), offset, fmt::format("ends with {}, expected {} spans", last, info.spans));
  }
  compare(data.path(), "the spans", digest.hex(), info.span_digest);
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

void Verifier::opaque_spans(const std::string& path, const ShardInfo& info) {
  InputFile index(path + "/" + layout::kIndexName, (info.entries + 1) * 8);
  InputFile data(path + "/" + layout::kDataName, info.data_bytes);
  layout::SpanDigest digest;
  const auto take = [&](std::uint64_t bytes) { digest.add(0, bytes, entry_digest(data, bytes)); };
  if (walk_offsets(index, info.entries, info.data_bytes, take)) {
    compare(data.path(), "the entries", digest.hex(), info.span_digest);
  } else {
    problem(index.path(), index.offset() - 8, "byte offsets that are not in order from 0 to the size of metadata.bin");
  }
}

void Verifier::id_entries(const std::string& path, const ShardInfo& info, IdRuns& runs) {
  InputFile index(path + "/" + layout::kIndexName, (info.entries + 1) * 8);
  InputFile data(path + "/" + layout::kDataName, info.data_bytes);
  const auto take = [&](std::uint64_t bytes) { runs.add_entry(bytes, entry_digest(data, bytes)); };
  if (!walk_offsets(index, info.entries, info.data_bytes, take)) {
    problem(index.path(), index.offset() - 8, "byte offsets that are not in order from 0 to the size of metadata.bin");
  }
}

void Verifier::shard_manifest(const std::string& path, const Format& format, const ShardInfo& info) {
  const std::string file = path + "/" + layout::kShardManifestName;
  guarded([&] {
    auto [said, counts] = layout::parse_shard_manifest(layout::read_small_file(file, layout::kMaxManifestBytes), file);
    counts.task_json = info.task_json;  // only shard.json says it
    if (layout::write_shard_manifest(said, counts) != layout::write_shard_manifest(format, info)) {
      problem(file, 0, "says something else than dataset.json");
    }
  });
}

void Verifier::shard(const std::string& path, const Format& format, const ShardInfo& info) {
  shard_manifest(path, format, info);
  for (const auto& [name, bytes] : layout::shard_files(format, info)) {
    const std::string file = path + "/" + name;
    const std::uint64_t size = bytes;
    if (name != layout::kStreamName) guarded([&] { scan(file, size, {}); });
  }
  IdRuns runs;
  bool fine = true;
  if (format.has_metadata()) {
    fine = guarded([&] {
      if (format.is_compact()) {
        compact_spans(path, info);
      } else if (format.is_ids()) {
        id_entries(path, info, runs);
      } else {
        opaque_spans(path, info);
      }
    });
  }
  if (!format.has_records()) return;
  const std::string file = path + "/" + layout::kStreamName;
  guarded([&] { stream(file, format, info, format.is_ids() && fine ? &runs : nullptr); });
}

void Verifier::run(const std::string& path) {
  layout::Manifest manifest;
  const std::string file = path + "/" + layout::kManifestName;
  try {
    manifest = layout::read_manifest(path);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::NotFound) throw;
    add(error.what());
    return;
  }
  report_.fingerprint = manifest.fingerprint;
  report_.shards = manifest.shards.size();
  for (const ShardInfo& info : manifest.shards) {
    report_.records += info.records;
    report_.entries += info.entries;
    for (const auto& listed : layout::shard_files(manifest.format, info)) total_ += listed.second;
  }
  for (const ShardInfo& info : manifest.shards) shard(path + "/" + info.name, manifest.format, info);
  if (progress_) progress_(report_.bytes, total_);
}

}  // namespace

VerifyReport verify(const std::string& path, const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  VerifyReport report;
  Verifier(report, progress).run(path);
  return report;
}

}  // namespace penstock::writer
