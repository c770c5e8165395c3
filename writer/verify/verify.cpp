#include "writer/verify/verify.h"

#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/files/input_file.h"
#include "writer/folder/unnamed.h"
#include "writer/shards/field_digests.h"
#include "writer/shards/id_runs.h"
#include "writer/verify/verify_columns.h"
#include "writer/verify/verify_index.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace penstock::writer {
namespace {

using layout::Format;
using layout::kCrcBlockBytes;
using layout::ShardInfo;

constexpr std::size_t kMaxProblems = 1000;
constexpr std::uint64_t kProgressBytes = 8U << 20;

using Consume = std::function<void(std::span<const std::byte>)>;
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

class Verifier {
 public:
  Verifier(VerifyReport& report, const Progress& progress, ByteStore* far)
      : far_(far), report_(report), progress_(progress) {}

  void run(const std::string& path);

 private:
  void count_bytes(const layout::Manifest& manifest);
  void features(const std::string& path, const layout::FeaturesInfo& named);
  void name_others(const std::string& path, const layout::Manifest& manifest);
  void shard(const std::string& path, const Format& format, const ShardInfo& info);
  void shard_manifest(const std::string& path, const Format& format, const ShardInfo& info);
  void stream(const std::string& path, const Format& format, const ShardInfo& info, IdRuns* runs);
  void scan(const std::string& path, std::uint64_t bytes, const Consume& consume);
  void problem(const std::string& file, std::uint64_t offset, const std::string& message);
  void add(std::string text);
  void passed(std::uint64_t bytes);
  template <typename Action>
  bool guarded(Action&& action);

  LocalStore local_;
  ByteStore* far_;                                       // null: on this machine
  ByteStore& files_ = far_ != nullptr ? *far_ : local_;  // reads the manifests
  VerifyReport& report_;
  const Progress& progress_;
  const TellProblem tell_ = [this](const std::string& file, std::uint64_t offset, const std::string& message) {
    problem(file, offset, message);
  };
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

// All blocks against their CRCs; consecutive bad ones are one problem.
void Verifier::scan(const std::string& path, std::uint64_t bytes, const Consume& consume) {
  InputFile file(path, bytes, far_);
  std::optional<InputFile> crcs;
  guarded([&] { crcs.emplace(path + layout::kCrcSuffix, layout::crc_bytes(bytes), far_); });
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
  const layout::FieldDigestList seen = digests.digests();
  for (std::size_t i = 0; i < seen.size(); ++i) {
    compare_digests(path, "field " + format.schema.leaves()[i].name, seen[i], info.field_digests[i], tell_);
  }
  if (runs == nullptr || !ids_fine) return;
  runs->finish();
  compare_digests(path, "its spans", runs->digest(), *info.span_digest, tell_);
  if (runs->spans() != info.spans) {
    problem(path, 0, fmt::format("{} spans, the manifest says {}", runs->spans(), info.spans));
  }
}

void Verifier::shard_manifest(const std::string& path, const Format& format, const ShardInfo& info) {
  const std::string file = path + "/" + layout::kShardManifestName;
  guarded([&] {
    auto [said, counts] =
        layout::parse_shard_manifest(layout::read_manifest_text(files_, file, Links::BelowParent), file);
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
    if (std::string_view(name) == layout::kColumnsName) {
      guarded([&] {
        ColumnsCheck columns(file, format, info, tell_);
        scan(file, size, [&](std::span<const std::byte> part) { columns.update(part); });
        columns.finish();
      });
    } else if (std::string_view(name) != layout::kStreamName) {
      guarded([&] { scan(file, size, {}); });
    }
  }
  IdRuns runs;
  bool fine = true;
  if (format.has_metadata()) {
    fine = guarded([&] {
      if (format.is_compact()) {
        check_compact_index(path, far_, info, tell_);
      } else if (format.is_ids()) {
        check_ids_index(path, far_, info, runs, tell_);
      } else {
        check_opaque_index(path, far_, info, tell_);
      }
    });
  }
  if (!format.has_records()) return;
  const std::string file = path + "/" + layout::kStreamName;
  guarded([&] { stream(file, format, info, format.is_ids() && fine ? &runs : nullptr); });
}

// What readers do not look at is never a problem of the dataset, nor is a folder that may not be listed.
void Verifier::name_others(const std::string& path, const layout::Manifest& manifest) {
  if (far_ != nullptr) return;  // whoever listed it says so
  try {
    report_.notices = describe_unnamed(path, manifest);
  } catch (const Error& error) {
    report_.notices = {fmt::format("what else lies there is not known: {}", error.what())};
  }
}

void Verifier::count_bytes(const layout::Manifest& manifest) {
  for (const ShardInfo& info : manifest.shards) {
    for (const auto& listed : layout::shard_files(manifest.format, info)) total_ += listed.bytes;
  }
}

// A dataset of its own, which is read as one.
void Verifier::features(const std::string& path, const layout::FeaturesInfo& named) {
  guarded([&] {
    const std::string folder = layout::path_in(path, named.folder);
    const layout::Manifest manifest = layout::read_manifest(files_, folder);
    if (manifest.fingerprint != named.fingerprint) {
      raise(ErrorKind::Corruption, "{}: fingerprint {}, the manifest of {} says {}", folder, manifest.fingerprint, path,
            named.fingerprint);
    }
    count_bytes(manifest);
    for (const ShardInfo& info : manifest.shards) shard(folder + "/" + info.name, manifest.format, info);
  });
}

void Verifier::run(const std::string& path) {
  layout::Manifest manifest;
  const std::string file = layout::path_in(path, layout::kManifestName);
  try {
    manifest = layout::read_manifest(files_, path);
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
  }
  count_bytes(manifest);
  name_others(path, manifest);
  for (const ShardInfo& info : manifest.shards) shard(layout::path_in(path, info.name), manifest.format, info);
  if (manifest.features) features(path, *manifest.features);
  if (progress_) progress_(report_.bytes, total_);
}

}  // namespace

VerifyReport verify(const std::string& path, const std::function<void(std::uint64_t, std::uint64_t)>& progress,
                    ByteStore* far) {
  VerifyReport report;
  Verifier(report, progress, far).run(path);
  return report;
}

}  // namespace penstock::writer
