#include "writer/shards/dataset_writer.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kValueChunkBytes = 1U << 20;

template <typename... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  raise(ErrorKind::InvalidArgument, format, std::forward<Arguments>(arguments)...);
}

WriterOptions checked(WriterOptions options) {
  layout::check_format(options.format);
  options.tokenizer_json = layout::check_tokenizer(options.tokenizer_json);
  options.task_json = layout::check_task(options.task_json);
  options.categories.resize(options.format.columns.size());
  layout::check_categories(options.format.columns, options.categories);
  if (options.features) {
    if (options.shard) refuse("features of shard {} alone: give them to commit()", *options.shard);
    check_features(*options.features);
  }
  if (options.shard_bytes == 0) refuse("a shard size of 0 bytes, expected at least 1");
  if (options.shard && !layout::parse_shard_name(layout::shard_name(*options.shard))) {
    refuse("shard {}: a shard's number has at most 12 digits, which are its folder's name",
           with_commas(*options.shard));
  }
  return options;
}

Bytes entry_of(std::size_t i, Bytes entries, std::span<const std::uint64_t> ends) {
  if (ends.empty()) return {};
  const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
  return entries.subspan(begin, ends[i] - begin);
}

}  // namespace

DatasetWriter::DatasetWriter(const std::string& path, WriterOptions options)
    : options_(checked(std::move(options))),
      folder_(path, options_.shard ? Access::Shard : Access::Whole, options_.overwrite, options_.run) {
  names_.resize(options_.format.columns.size());
  numbers_.resize(names_.size());
  add_names({{}, options_.categories});
  if (!options_.shard) return;
  // Said now, not after hours of writing.
  for (const std::uint64_t number : folder_.finished()) {
    if (number == *options_.shard) refuse("{}: shard {} is finished already", path, folder_.shard_name(number));
  }
}

DatasetWriter::~DatasetWriter() {
  abort();
}

void DatasetWriter::check_usable() const {
  if (!failure_.empty()) refuse("this writer failed and publishes nothing: {}", failure_);
  if (closed_) refuse("{}: this writer is closed", folder_.path());
  if (!folder_.is_owner())
    refuse("{}: this writer belongs to the process that made it, not to its fork", folder_.path());
}

ShardWriter& DatasetWriter::shard() {
  if (!shard_) {
    shard_.emplace(folder_, options_.shard.value_or(finished_.size()), options_.format, options_.task_json,
                   options_.categories);
  }
  return *shard_;
}

void DatasetWriter::finish_shard() {
  first_entry_ += shard().entries();
  shard().set_task(options_.task_json);
  finished_.push_back(shard().finish());
  shard_.reset();
}

bool DatasetWriter::is_full() const noexcept {
  return !options_.shard && shard_ && shard_->bytes() >= options_.shard_bytes;
}

void DatasetWriter::roll() {
  if (is_full()) finish_shard();
}

void DatasetWriter::append(Bytes records, std::optional<Bytes> entry, const NamedValues& values) {
  const std::uint64_t length =
      options_.format.has_records() ? records.size() / options_.format.schema.record_bytes() : 0;
  const std::uint64_t entry_end = entry ? entry->size() : 0;
  append_batch(records, std::span(&length, 1), entry.value_or(Bytes()), std::span(&entry_end, entry ? 1 : 0), values);
}

// Refused before one of them is added: what shard.json and dataset.json have no room for would be seen at the end
// alone.
void DatasetWriter::add_names(const NamedValues& values) {
  const ValueTypes& types = options_.format.columns;
  std::uint64_t bytes = names_bytes_;
  for (std::size_t c = 0; c < types.size(); ++c) {
    if (!types[c].is_category) continue;
    for (const std::string& name : values.names[c]) {
      if (!numbers_[c].contains(name)) bytes += layout::category_json_bytes(name);
    }
    layout::check_categories_room(types[c].name, bytes);
  }
  names_bytes_ = bytes;
  for (std::size_t c = 0; c < types.size(); ++c) {
    for (const std::string& name : types[c].is_category ? values.names[c] : layout::Categories()) {
      if (numbers_[c].try_emplace(name, static_cast<std::int32_t>(names_[c].size())).second) names_[c].push_back(name);
    }
  }
}

// With codes that count names_.
ColumnValues DatasetWriter::numbered(const NamedValues& values, std::uint64_t documents) {
  add_names(values);
  ColumnValues own = values.values;
  codes_.resize(own.size());
  for (std::size_t c = 0; c < own.size(); ++c) {
    if (!options_.format.columns[c].is_category) continue;
    std::vector<std::int32_t> number_of;
    for (const std::string& name : values.names[c]) number_of.push_back(numbers_[c].at(name));
    codes_[c].resize(documents);
    std::memcpy(codes_[c].data(), own[c].data(), own[c].size());
    for (std::int32_t& code : codes_[c]) code = code < 0 ? -1 : number_of[static_cast<std::size_t>(code)];
    own[c] = std::as_bytes(std::span(codes_[c]));
  }
  return own;
}

void DatasetWriter::check_values(const NamedValues& given, std::uint64_t documents) const {
  const ColumnValues& values = given.values;
  const ValueTypes& types = options_.format.columns;
  if (values.size() != types.size()) {
    refuse("values of {} columns for each document, this writer has {}", values.size(), types.size());
  }
  for (std::size_t c = 0; c < types.size(); ++c) {
    if (values[c].size() != documents * types[c].bytes()) {
      refuse("column {}: {} bytes of values for {} documents of {} bytes each", excerpt(types[c].name),
             values[c].size(), documents, types[c].bytes());
    }
    if (!types[c].is_category) continue;
    if (given.names.size() != types.size()) refuse("column {}: no names of its codes", excerpt(types[c].name));
    layout::check_categories(types[c].name, given.names[c]);
    for (std::uint64_t i = 0; i < documents; ++i) {
      std::int32_t code = 0;
      std::memcpy(&code, values[c].data() + i * sizeof(code), sizeof(code));
      if (code >= -1 && (code < 0 || static_cast<std::size_t>(code) < given.names[c].size())) continue;
      refuse("column {}: document {} of this append has the code {}, there are {} categories", excerpt(types[c].name),
             i, code, given.names[c].size());
    }
  }
}

void DatasetWriter::check_entries(Bytes entries) const {
  if (options_.format.is_boundaries() && !entries.empty()) {
    refuse("entries of {} bytes for the codec {}, which keeps none", with_commas(entries.size()),
           layout::kBoundariesCodecJson);
  }
}

void DatasetWriter::check_batch(Bytes records, std::span<const std::uint64_t> lengths, Bytes entries,
                                std::span<const std::uint64_t> entry_ends) const {
  const layout::Format& format = options_.format;
  const std::uint64_t record_bytes = format.schema.record_bytes();
  std::uint64_t left = format.has_records() ? records.size() / record_bytes : 0;
  if (left * record_bytes != records.size()) refuse("{} bytes are no whole records", with_commas(records.size()));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::uint64_t length = lengths[i];
    if (format.is_ids() && length == 0) {
      refuse(
          "document {} of this append has no records: the layout \"ids\" keeps an entry by the records that have its "
          "id, so this one would be lost; leave it out, or use layout=\"compact\"",
          with_commas(i));
    }
    if (length > left) refuse("lengths that sum up to more than the records");
    left -= length;
  }
  if (left != 0) refuse("lengths that leave {} records over", with_commas(left));
  if (entry_ends.size() != (format.has_metadata() ? lengths.size() : 0)) {
    refuse("{} entries for {} documents", entry_ends.size(), lengths.size());
  }
  std::uint64_t end = 0;
  for (const std::uint64_t entry_end : entry_ends) {
    if (entry_end < std::exchange(end, entry_end)) refuse("ends of entries that are not in order");
  }
  if (end != entries.size()) refuse("entries of {} bytes that end at {}", entries.size(), end);
  check_entries(entries);
}

void DatasetWriter::append_batch(Bytes records, std::span<const std::uint64_t> lengths, Bytes entries,
                                 std::span<const std::uint64_t> entry_ends, const NamedValues& values) {
  check_usable();
  check_batch(records, lengths, entries, entry_ends);
  check_values(values, lengths.size());
  const ColumnValues own = numbered(values, lengths.size());
  const layout::Format& format = options_.format;
  const std::uint64_t record_bytes = format.schema.record_bytes();
  guarded([&] {
    if (format.is_ids()) return append_with_ids(records, lengths, entries, entry_ends, own);
    std::uint64_t at = 0;
    std::uint64_t written = 0;
    const auto write = [&] {  // documents that follow one another at once
      if (written < at) shard().write_counted(records.subspan(written, at - written));
      written = at;
    };
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (format.has_metadata()) shard().begin_span(entry_of(i, entries, entry_ends));
      shard().add_values(own, i, names_);
      shard().count_records(lengths[i]);
      at += lengths[i] * record_bytes;
      records_ += lengths[i];
      if (!is_full()) continue;
      write();
      finish_shard();
    }
    write();
  });
}

// Each document has an entry of its own.
void DatasetWriter::append_with_ids(Bytes records, std::span<const std::uint64_t> lengths, Bytes entries,
                                    std::span<const std::uint64_t> entry_ends, const ColumnValues& own) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::uint64_t id = first_entry_ + shard().add_entry(entry_of(i, entries, entry_ends));
    shard().add_values(own, i, names_);
    const Bytes part = records.first(lengths[i] * options_.format.schema.record_bytes());
    append_ids(part, std::span(&id, 1));
    records = records.subspan(part.size());
  }
}

std::uint64_t DatasetWriter::entry(Bytes entry, const NamedValues& values) {
  check_usable();
  if (!options_.format.is_ids()) refuse("entry() is for the layout \"ids\"; give append() the metadata");
  check_entries(entry);
  check_values(values, 1);
  const ColumnValues own = numbered(values, 1);
  std::uint64_t id = 0;
  guarded([&] {
    id = first_entry_ + shard().add_entry(entry);
    shard().add_values(own, 0, names_);
  });
  return id;
}

void DatasetWriter::check_ids(std::span<const std::uint64_t> ids, std::uint64_t count) const {
  if (!options_.format.is_ids()) refuse("metadata_id is for the layout \"ids\"");
  if (ids.size() != 1 && ids.size() != count) {
    refuse("{} values of metadata_id for {} records, expected one for all or one for each", ids.size(), count);
  }
  const std::uint64_t end = first_entry_ + (shard_ ? shard_->entries() : 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= end) {
      refuse("metadata_id {} at record {} of this append: entry() has given {} so far", with_commas(ids[i]), i,
             end == 0 ? "none" : "0 to " + with_commas(end - 1));
    }
    if (ids[i] < first_entry_) {
      refuse(
          "metadata_id {} at record {} of this append is of a finished shard; the shard under way begins at {}: call "
          "entry() again",
          with_commas(ids[i]), i, with_commas(first_entry_));
    }
  }
}

void DatasetWriter::append_ids(Bytes records, std::span<const std::uint64_t> ids) {
  check_usable();
  const std::uint64_t record_bytes = options_.format.schema.record_bytes();
  const std::uint64_t count = record_bytes == 0 ? 0 : records.size() / record_bytes;
  check_ids(ids, count);
  guarded([&] {
    const std::uint64_t stored_bytes = record_bytes + layout::kIdBytes;
    const std::uint64_t step = std::max<std::uint64_t>(1, kValueChunkBytes / stored_bytes);
    for (std::uint64_t first = 0; first < count; first += step) {
      const std::uint64_t part = std::min(step, count - first);
      stored_.resize(part * stored_bytes);
      std::byte* to = stored_.data();
      for (std::uint64_t i = first; i < first + part; ++i, to += stored_bytes) {
        const auto id = static_cast<std::uint32_t>(ids[ids.size() == 1 ? 0 : i] - first_entry_);
        std::memcpy(to, records.data() + i * record_bytes, record_bytes);
        std::memcpy(to + record_bytes, &id, sizeof(id));
      }
      shard().write_records(stored_);
    }
    records_ += count;
    roll();
  });
}

void DatasetWriter::set_task(const std::string& task_json) {
  check_usable();
  options_.task_json = layout::check_task(task_json);
}

void DatasetWriter::publish() {
  layout::Manifest manifest{options_.format, options_.tokenizer_json, "", finished_};
  if (options_.features) manifest.features = write_features(folder_, *options_.features);
  folder_.publish_manifest(manifest);
}

void DatasetWriter::commit() {
  if (closed_ && failure_.empty()) return;
  check_usable();
  guarded([&] {
    // Without a record there is one empty shard: a task may be empty, and a dataset is never without a format.
    if (shard_ || finished_.empty()) finish_shard();
    if (!options_.shard) publish();
  });
  closed_ = true;
  folder_.release();
}

void DatasetWriter::leave() noexcept {
  if (finished_.empty()) return abort();
  if (closed_) return;
  closed_ = true;
  shard_.reset();
  folder_.release();
}

void DatasetWriter::abort() noexcept {
  if (closed_) return;
  closed_ = true;
  shard_.reset();
  folder_.abort();
}

// ---- features

namespace {

constexpr const char* kRawCodecJson = R"({"name":"raw"})";

// As an opaque dataset of one shard, so that equal names have equal fingerprints.
std::string write_dataset(const std::string& path, const FeatureTable& features) {
  WriterOptions options;
  options.format.mode = layout::kModeOpaque;
  options.format.codec_json = kRawCodecJson;
  options.format.columns = features.columns;
  options.categories = features.categories;
  options.task_json = features.task_json;
  options.shard_bytes = UINT64_MAX;
  DatasetWriter writer(path, options);
  std::string entries;
  std::vector<std::uint64_t> ends;
  for (const std::string& name : features.names) ends.push_back((entries += name).size());
  const std::vector<std::uint64_t> lengths(ends.size(), 0);
  const NamedValues values{{features.values.begin(), features.values.end()}, features.categories};
  writer.append_batch({}, lengths, std::as_bytes(std::span(entries)), ends, values);
  writer.commit();
  LocalStore files;
  return layout::read_manifest(files, path).fingerprint;
}

}  // namespace

std::string write_features(const std::string& path, const FeatureTable& features) {
  check_features(features);
  return write_dataset(path, features);
}

layout::FeaturesInfo write_features(DatasetFolder& out, const FeatureTable& features) {
  check_features(features);
  return out.publish_features([&](const std::string& path) { return write_dataset(path, features); });
}

}  // namespace penstock::writer
