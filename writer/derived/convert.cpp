#include "writer/derived/convert.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/derived/combine.h"
#include "writer/files/input_file.h"
#include "writer/folder/dataset_folder.h"
#include "writer/shards/column_reader.h"
#include "writer/shards/shard_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace penstock::writer {
namespace {

using layout::CompactIndexEntry;
using layout::Format;
using layout::ShardInfo;

constexpr std::uint64_t kConvertedBytes = 1U << 20;

struct Files {
  InputFile stream, data, index;
};

Files open_files(const std::string& path, const Format& format, const ShardInfo& shard) {
  const auto files = layout::shard_files(format, shard);
  const auto open = [&](std::size_t i) { return InputFile(path + "/" + files[i].name, files[i].bytes); };
  return {open(0), open(1), open(2)};
}

// An entry passes through in pieces, and so may have any size.
ShardWriter::Pieces entry_at(const InputFile& data, std::uint64_t begin, std::uint64_t end) {
  if (end < begin || end > data.bytes()) {
    raise(ErrorKind::Corruption, "{}: an entry from {} to {} of {} bytes", data.path(), begin, end, data.bytes());
  }
  return [&data, begin, end](const auto& put) {
    std::vector<std::byte> piece;
    for (std::uint64_t at = begin; at < end; at += piece.size()) {
      piece.resize(std::min(kConvertedBytes, end - at));
      data.read_at(at, piece);
      put(piece);
    }
  };
}

// Records pass through in pieces, so that a span of any length costs no memory.
void copy_with_id(const InputFile& stream, std::uint64_t first, std::uint64_t end, std::uint64_t record_bytes,
                  std::uint32_t id, ShardWriter& out) {
  const std::uint64_t stored_bytes = record_bytes + sizeof(id);
  const std::uint64_t step = std::max<std::uint64_t>(1, kConvertedBytes / stored_bytes);
  std::vector<std::byte> records;
  std::vector<std::byte> stored;
  for (; first < end; first += std::min(step, end - first)) {
    const std::uint64_t count = std::min(step, end - first);
    records.resize(count * record_bytes);
    stored.resize(count * stored_bytes);
    stream.read_at(first * record_bytes, records);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::memcpy(stored.data() + i * stored_bytes, records.data() + i * record_bytes, record_bytes);
      std::memcpy(stored.data() + i * stored_bytes + record_bytes, &id, sizeof(id));
    }
    out.write_records(stored);
  }
}

void compact_to_ids(const std::string& path, const Format& format, const ShardInfo& shard, ShardWriter& out) {
  Files files = open_files(path, format, shard);
  ColumnReader columns(path, format, shard);
  auto here = files.index.next_value<CompactIndexEntry>();
  for (std::uint64_t i = 0; i < shard.spans; ++i) {
    const auto next = files.index.next_value<CompactIndexEntry>();
    if (next.first_record < here.first_record || next.first_record > shard.records) {
      raise(ErrorKind::Corruption, "{}: span {} from record {} to {}", files.index.path(), i, here.first_record,
            next.first_record);
    }
    if (next.first_record == here.first_record) {
      raise(ErrorKind::InvalidArgument, "{}: span {} has no records, which the ids layout cannot express", path,
            with_commas(i));
    }
    const std::uint32_t id = out.add_entry(entry_at(files.data, here.byte_offset, next.byte_offset));
    out.add_values(columns.values(i), 0, columns.categories());
    copy_with_id(files.stream, here.first_record, next.first_record, format.stored_record_bytes(), id, out);
    here = next;
  }
}

void ids_to_compact(const std::string& path, const Format& format, const ShardInfo& shard, ShardWriter& out) {
  Files files = open_files(path, format, shard);
  ColumnReader columns(path, format, shard);
  const std::uint64_t stored_bytes = format.stored_record_bytes();
  const std::uint64_t record_bytes = format.schema.record_bytes();
  const std::uint64_t step = std::max<std::uint64_t>(1, kConvertedBytes / stored_bytes);
  std::vector<std::byte> stored;
  std::vector<std::byte> run;  // records of one id, without it
  std::uint64_t current = UINT64_MAX;
  for (std::uint64_t first = 0; first < shard.records; first += step) {
    stored.resize(std::min(step, shard.records - first) * stored_bytes);
    files.stream.read_at(first * stored_bytes, stored);
    for (auto at = stored.begin(); at != stored.end(); at += static_cast<std::ptrdiff_t>(stored_bytes)) {
      std::uint32_t id = 0;
      std::memcpy(&id, &at[static_cast<std::ptrdiff_t>(record_bytes)], sizeof(id));
      if (id != current) {
        out.write_records(run);
        run.clear();
        if (id >= shard.entries) raise(ErrorKind::Corruption, "{}: metadata_id {} of {}", path, id, shard.entries);
        std::array<std::uint64_t, 2> ends{};
        files.index.read_at(std::uint64_t{id} * 8, std::as_writable_bytes(std::span(ends)));
        out.begin_span(entry_at(files.data, ends[0], ends[1]));
        out.add_values(columns.values(id), 0, columns.categories());
        current = id;
      }
      run.insert(run.end(), at, at + static_cast<std::ptrdiff_t>(record_bytes));
    }
    out.write_records(run);
    run.clear();
  }
}

// The tables of a shard, which the other layout has too.
std::vector<layout::Categories> categories_of(const Format& format, const ShardInfo& shard) {
  std::vector<layout::Categories> categories(format.columns.size());
  for (std::size_t c = 0; c < categories.size(); ++c) {
    if (format.columns[c].is_category) categories[c] = *shard.columns->categories[c];
  }
  return categories;
}

}  // namespace

std::string convert(const std::string& path, const std::string& out, const std::string& layout_name, bool overwrite) {
  LocalStore files;
  const layout::Manifest input = layout::read_manifest(files, path);
  layout::Manifest output = input;
  output.shards.clear();
  output.format.layout = layout_name;
  if (input.format.mode != layout::kModeStream) {
    raise(ErrorKind::InvalidArgument, "{}: mode {}: only streams with metadata have a layout", path, input.format.mode);
  }
  layout::check_format(output.format);
  if (input.format.layout == layout_name) {
    raise(ErrorKind::InvalidArgument, "{}: its layout is {} already", path, layout_name);
  }
  DatasetFolder folder(out, Access::Whole, overwrite);
  try {
    for (const ShardInfo& shard : input.shards) {
      ShardWriter writer(folder, output.shards.size(), output.format, "null", categories_of(output.format, shard));
      const auto rewrite = input.format.is_compact() ? compact_to_ids : ids_to_compact;
      rewrite(layout::path_in(path, shard.name), input.format, shard, writer);
      output.shards.push_back(writer.finish());
    }
    // Before it is published: what was read must be what was written once.
    const std::string fingerprint = layout::fingerprint_of(output.format, output.shards);
    if (fingerprint != input.fingerprint) {
      raise(ErrorKind::Corruption, "{}: its content has fingerprint {}, its manifest says {}", path, fingerprint,
            input.fingerprint);
    }
    if (input.features) output.features = copy_features(path, *input.features, folder);
    folder.publish_manifest(output);
  } catch (...) {
    folder.abort();
    throw;
  }
  return input.fingerprint;
}

}  // namespace penstock::writer
