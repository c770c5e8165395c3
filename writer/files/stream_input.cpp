#include "writer/files/stream_input.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "core/io/local/open_file.h"
#include "core/rows/cast.h"
#include "core/rows/cast_runs.h"
#include "layout/documents/document_table.h"
#include "layout/reading/reads.h"
#include "writer/files/output_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace penstock::writer {
namespace {

bool is_one_integer(const Schema& schema) {
  return schema.leaves().size() == 1 && schema.leaves()[0].is_integer() && schema.leaves()[0].dims.empty();
}

bool follow_one_another(const layout::Dataset& dataset) {
  if (dataset.fields_apart || dataset.spans == layout::SpanKind::Arrays) return false;
  return std::all_of(dataset.shards.begin(), dataset.shards.end(), [](const layout::Shard& shard) {
    return dynamic_cast<const LocalStore*>(shard.stream.store()) != nullptr &&
           (shard.table == nullptr || !shard.table->knows_bytes());
  });
}

ScalarType type_of(const Schema& schema) {
  return {schema.leaves()[0].kind, schema.leaves()[0].item_bytes};
}

}  // namespace

bool StreamInput::can_read(const layout::Dataset& from, const Schema& to) {
  if (!is_one_integer(from.schema) || !is_one_integer(to) || !follow_one_another(from)) return false;
  if (from.stored_record_bytes != from.schema.record_bytes()) return false;  // ids
  return has_same_bytes(from.schema.leaves()[0], type_of(to)) ||
         find_cast_run(type_of(from.schema), type_of(to)) != nullptr;
}

StreamInput::StreamInput(const layout::Dataset& from, const Schema& to, std::uint64_t begin, std::uint64_t end)
    : from_(from),
      leaf_(from.schema.leaves()[0]),
      type_(type_of(to)),
      same_bytes_(has_same_bytes(leaf_, type_)),
      at_(begin),
      end_(end) {
  if (begin > end || end > from.record_count()) {
    raise(ErrorKind::InvalidArgument, "{}: records {} to {} of {}", from.path, with_commas(begin), with_commas(end),
          with_commas(from.record_count()));
  }
}

void StreamInput::open_shard() {
  shard_ = layout::Dataset::shard_of(from_.record_starts, at_);
  const File& file = from_.shards[shard_].stream;
  const OpenFile opened = open_file(file, Access::Buffered);
  if (!opened) raise_system(errno, "cannot be opened", file.path());
  file_ = Descriptor(opened.fd);
  (void)::posix_fadvise(opened.fd, 0, 0, POSIX_FADV_SEQUENTIAL);  // advice; a refusal changes nothing
}

std::span<const std::byte> StreamInput::next(std::uint64_t most) {
  if (at_ == end_) return {};
  if (file_.get() < 0 || at_ == from_.record_starts[shard_ + 1]) open_shard();
  const layout::Shard& shard = from_.shards[shard_];
  const std::uint64_t bytes = from_.stored_record_bytes;
  const std::uint64_t room =
      std::max<std::uint64_t>(1, OutputFile::kPieceBytes / std::max<std::uint64_t>(bytes, type_.bytes));
  const std::uint64_t count =
      std::min({std::max<std::uint64_t>(1, most), room, std::min(end_, from_.record_starts[shard_ + 1]) - at_});
  const std::uint64_t offset = shard.stream_offset + (at_ - from_.record_starts[shard_]) * bytes;
  layout::check_inside(shard.stream, offset, count * bytes);
  read_.resize(count * bytes);
  read_exactly(file_.get(), read_, offset, shard.stream.path());
  at_ += count;
  if (same_bytes_) {
    check_values(leaf_, read_.data(), count, type_);
    return read_;
  }
  cast_.resize(count * type_.bytes);
  cast_leaf(leaf_, read_.data(), bytes, count, type_, cast_.data());
  return cast_;
}

}  // namespace penstock::writer
