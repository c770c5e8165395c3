// The format on disk, versions 1 and 2: names, constants and structs. docs/format.md says the same byte by byte.
//
// All numbers are little-endian. A dataset is a folder with dataset.json and shard folders; what dataset.json does not
// name does not exist. Thread rule: constants and pure functions; any thread.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock::layout {

static_assert(std::endian::native == std::endian::little, "the format's structs are read and written in place");

inline constexpr std::string_view kFormatName = "penstock";
inline constexpr std::string_view kShardFormatName = "penstock shard";
inline constexpr std::uint64_t kFormatVersion = 1;
inline constexpr std::uint64_t kColumnsFormatVersion =
    2;  // of a dataset that has columns or features; all else as in 1

inline constexpr const char* kManifestName = "dataset.json";
inline constexpr const char* kShardManifestName = "shard.json";
inline constexpr const char* kStreamName = "stream.bin";
inline constexpr const char* kDataName = "metadata.bin";
inline constexpr const char* kIndexName = "metadata.index";
inline constexpr const char* kDirectoryName = "metadata.directory";
inline constexpr const char* kColumnsName = "columns.bin";
/// The folder of a dataset of features; of a later generation "features.2".
inline constexpr std::string_view kFeaturesName = "features";
inline constexpr const char* kCrcSuffix = ".crc";
inline constexpr const char* kStreamCrcName = "stream.bin.crc";
inline constexpr const char* kDataCrcName = "metadata.bin.crc";
inline constexpr const char* kIndexCrcName = "metadata.index.crc";
inline constexpr const char* kDirectoryCrcName = "metadata.directory.crc";
inline constexpr const char* kColumnsCrcName = "columns.bin.crc";
/// What a writer has not finished: folders and files of this prefix are leftovers once no writer is at work.
inline constexpr std::string_view kPartialPrefix = ".partial-";
/// The lock of the run that is at work in the folder; no leftover.
inline constexpr const char* kRunLockName = ".partial-run";

inline constexpr const char* kModeStream = "stream";  // records, spans, entries
inline constexpr const char* kModeTokens = "tokens";  // records alone
inline constexpr const char* kModeOpaque = "opaque";  // entries alone

/// The codec of a stream that keeps where its documents begin and nothing else of them: no entry has a byte.
inline constexpr std::string_view kBoundariesCodecJson = R"({"name":"boundaries"})";

/// Every file has a CRC32C (u32) for each block of this size beside it, in <file>.crc; the last block may be short.
inline constexpr std::uint64_t kCrcBlockBytes = 4096;

/// metadata.directory (compact) has the number of the span that covers records 0, 4096, 8192, …, then spans.
inline constexpr std::uint64_t kDirectoryStride = 4096;
inline constexpr std::uint64_t kDirectoryEntryBytes = 8;

/// metadata.index of the compact layout: one for each span, and a last one with (records, bytes of metadata.bin).
struct CompactIndexEntry {
  std::uint64_t first_record;
  std::uint64_t byte_offset;
};
static_assert(sizeof(CompactIndexEntry) == 16 && std::is_trivially_copyable_v<CompactIndexEntry>);

/// metadata.index of the ids layout and of opaque documents: byte offsets of the entries, and a last one with the bytes
/// of metadata.bin.
inline constexpr std::uint64_t kOffsetIndexEntryBytes = 8;

/// The ids layout's last field of each stored record: `<u4`, the number of its entry in the shard.
inline constexpr const char* kIdField = "metadata_id";
inline constexpr std::uint64_t kIdBytes = 4;

/// Each column of columns.bin begins at a multiple of this.
inline constexpr std::uint64_t kColumnAlignment = 64;

/// Greatest size of a dataset.json that a reader takes, and of what it says beside its list of shards.
inline constexpr std::uint64_t kMaxManifestBytes = 256ULL << 20;
inline constexpr std::uint64_t kMaxHeaderBytes = 16ULL << 20;

/// Greatest size of all names of categories, as JSON: what a header and a shard.json have room for.
inline constexpr std::uint64_t kMaxCategoriesBytes = 12ULL << 20;

/// Most names in the tables of all shards of a dataset.json.
inline constexpr std::uint64_t kMaxTableNames = 1ULL << 24;

/// Greatest size of a shard.json.
inline constexpr std::uint64_t kMaxShardManifestBytes = 16ULL << 20;

/// Entries of metadata.directory for a shard of `records` records.
constexpr std::uint64_t directory_entries(std::uint64_t records) noexcept {
  return records / kDirectoryStride + (records % kDirectoryStride != 0 ? 1 : 0) + 1;
}

/// Size of the side file of a file of `bytes` bytes.
constexpr std::uint64_t crc_bytes(std::uint64_t bytes) noexcept {
  return (bytes / kCrcBlockBytes + (bytes % kCrcBlockBytes != 0 ? 1 : 0)) * 4;
}

/// Which shard a folder is. Shards that are to replace a published dataset have a later generation than its own, so
/// that both can lie in one folder until the new manifest is there.
struct ShardId {
  std::uint64_t generation = 0;
  std::uint64_t number = 0;
  auto operator<=>(const ShardId&) const = default;  // NOLINT(modernize-use-nullptr): clang 14 sees one in it
};

/// "00003": the folder of shard 3; "00003.2" in generation 2.
std::string shard_name(std::uint64_t number, std::uint64_t generation = 0);

/// What a name of that form says; nullopt for any other name.
std::optional<ShardId> parse_shard_name(std::string_view name) noexcept;

/// "features"; "features.2" in generation 2.
std::string features_name(std::uint64_t generation = 0);

/// The generation that a name of that form says; nullopt for any other name.
std::optional<std::uint64_t> parse_features_name(std::string_view name) noexcept;

}  // namespace penstock::layout
