#include "writer/shards/shard_writer.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace penstock::writer {

ShardWriter::ShardWriter(DatasetFolder& folder, std::uint64_t number, const layout::Format& format,
                         std::string task_json, const std::vector<layout::Categories>& first)
    : folder_(folder),
      number_(number),
      format_(format),
      task_json_(std::move(task_json)),
      field_digests_(format.schema, format.stored_record_bytes()) {
  partial_ = folder.make_partial(number);
  path_ = folder.path() + "/" + partial_;
  try {
    create_files(first);
  } catch (...) {
    give_up();
    throw;
  }
}

ShardWriter::~ShardWriter() {
  if (!partial_.empty() && folder_.is_owner()) give_up();
}

// Files are closed first: to remove a folder takes descriptors, which this process may be out of.
void ShardWriter::give_up() noexcept {
  for (std::optional<OutputFile>* file : {&stream_, &data_, &index_, &span_directory_}) file->reset();
  columns_.reset();
  directory_ = Descriptor();
  remove_folder(folder_.fd(), partial_);
}

void ShardWriter::create_files(const std::vector<layout::Categories>& first) {
  directory_ = open_folder(folder_.fd(), partial_, path_);
  const auto create = [&](std::optional<OutputFile>& file, const char* name) {
    file.emplace(directory_.get(), name, path_ + "/" + name);
  };
  if (format_.has_records()) create(stream_, layout::kStreamName);
  if (!format_.has_metadata()) return;
  create(data_, layout::kDataName);
  create(index_, layout::kIndexName);
  if (format_.is_compact()) create(span_directory_, layout::kDirectoryName);
  if (format_.has_columns()) columns_.emplace(directory_.get(), path_, format_.columns, first);
}

std::uint64_t ShardWriter::bytes() const noexcept {
  return records_ * format_.stored_record_bytes() + (data_ ? data_->bytes() : 0) + (columns_ ? columns_->bytes() : 0);
}

void ShardWriter::begin_entry() {
  if (format_.is_compact()) index_->write_value(records_);
  index_->write_value(data_->bytes());
  ++entries_;
}

void ShardWriter::write_entry(std::span<const std::byte> entry) {
  begin_entry();
  data_->write(entry);
}

// Returns its size and digest.
std::pair<std::uint64_t, DigestBytes> ShardWriter::write_entry(const Pieces& entry) {
  begin_entry();
  std::uint64_t bytes = 0;
  Digest digest;
  entry([&](std::span<const std::byte> piece) {
    data_->write(piece);
    digest.update(piece);
    bytes += piece.size();
  });
  return {bytes, digest.bytes()};
}

void ShardWriter::begin_span(std::span<const std::byte> entry) {
  assert(format_.has_metadata() && !format_.is_ids());
  if (entries_ != 0) end_span();
  write_entry(entry);
  entry_bytes_ = entry.size();
  entry_digest_ = digest_of(entry);
}

void ShardWriter::begin_span(const Pieces& entry) {
  assert(format_.has_metadata() && !format_.is_ids());
  if (entries_ != 0) end_span();
  std::tie(entry_bytes_, entry_digest_) = write_entry(entry);
}

void ShardWriter::end_span() {
  span_digest_.add(span_records_, entry_bytes_, entry_digest_);
  span_records_ = 0;
}

void ShardWriter::check_ids() const {
  assert(format_.is_ids());
  if (entries_ <= UINT32_MAX) return;
  raise(ErrorKind::InvalidArgument, "shard {} has {} entries, all that u32 ids can name", number_,
        with_commas(entries_));
}

std::uint32_t ShardWriter::add_entry(const Pieces& entry) {
  check_ids();
  const auto [bytes, digest] = write_entry(entry);
  runs_.add_entry(bytes, digest);
  return static_cast<std::uint32_t>(entries_ - 1);
}

std::uint32_t ShardWriter::add_entry(std::span<const std::byte> entry) {
  check_ids();
  write_entry(entry);
  runs_.add_entry(entry.size(), digest_of(entry));
  return static_cast<std::uint32_t>(entries_ - 1);
}

void ShardWriter::add_values(const ColumnValues& values, std::uint64_t i,
                             const std::vector<layout::Categories>& names) {
  if (columns_) columns_->add(values, i, names);
}

// One number for each multiple of the stride in [records_, records_ + count): the span that covers it.
void ShardWriter::write_directory(std::uint64_t count) {
  constexpr std::uint64_t kStride = layout::kDirectoryStride;
  for (std::uint64_t at = (records_ + kStride - 1) / kStride * kStride; at < records_ + count; at += kStride) {
    span_directory_->write_value(entries_ - 1);
  }
}

void ShardWriter::write_records(std::span<const std::byte> records) {
  if (records.empty()) return;
  const std::uint64_t record_bytes = format_.stored_record_bytes();
  if (format_.is_ids() && runs_.update(records, record_bytes)) {
    raise(ErrorKind::InvalidArgument, "a metadata_id that no entry of shard {} has", number_);
  }
  count_records(records.size() / record_bytes);
  write_counted(records);
}

void ShardWriter::count_records(std::uint64_t count) {
  assert(!format_.is_compact() || entries_ != 0 || count == 0);
  if (format_.is_compact()) write_directory(count);
  records_ += count;
  span_records_ += count;
}

std::uint64_t ShardWriter::best_count() const noexcept {
  return std::max<std::uint64_t>(1, stream_->until_piece() / format_.stored_record_bytes());
}

// Piece after piece, so that the digest reads what the write has left in the core's cache.
void ShardWriter::write_counted(std::span<const std::byte> records) {
  const std::uint64_t record_bytes = format_.stored_record_bytes();
  assert(records.size() % record_bytes == 0);
  while (!records.empty()) {
    const auto part = records.first(std::min<std::uint64_t>(records.size(), best_count() * record_bytes));
    stream_->write(part);
    field_digests_.update(part);
    records = records.subspan(part.size());
  }
}

layout::ShardInfo ShardWriter::finish_files() {
  layout::ShardInfo info;
  info.task_json = task_json_;
  info.records = records_;
  info.entries = entries_;
  info.field_digests = field_digests_.digests();
  if (stream_) stream_->finish();
  if (!format_.has_metadata()) return info;
  if (format_.is_ids()) {
    runs_.finish();
  } else if (entries_ != 0) {
    end_span();
  }
  info.spans = format_.is_ids() ? runs_.spans() : entries_;
  info.span_digest = format_.is_ids() ? runs_.digest() : span_digest_.bytes();
  info.data_bytes = data_->bytes();
  if (format_.is_compact()) index_->write_value(records_);
  index_->write_value(data_->bytes());
  data_->finish();
  index_->finish();
  if (span_directory_) {
    span_directory_->write_value(entries_);
    span_directory_->finish();
  }
  if (columns_) info.columns = columns_->finish();
  return info;
}

void ShardWriter::write_shard_manifest(const layout::ShardInfo& info) {
  const std::string path = path_ + "/" + layout::kShardManifestName;
  const std::string text = layout::write_shard_manifest(format_, info);
  Descriptor file = create_file(directory_.get(), layout::kShardManifestName, path);
  write_all(file.get(), std::as_bytes(std::span(text)), 0, path);
  sync_file(file.get(), path);
  file.close(path);
}

layout::ShardInfo ShardWriter::finish() {
  layout::ShardInfo info = finish_files();
  write_shard_manifest(info);
  sync_folder(directory_.get(), path_);
  folder_.publish_shard(partial_, number_);
  partial_.clear();
  directory_.reset();
  info.name = folder_.shard_name(number_);
  return info;
}

}  // namespace penstock::writer
