#include "writer/files/record_input.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"

namespace penstock::writer {
namespace {

constexpr std::uint64_t kRecordBufferBytes = 1U << 20;

}  // namespace

RecordInput::RecordInput(const std::string& path, const layout::Format& format, const layout::ShardInfo& info,
                         Progress& progress)
    : format_(format),
      info_(info),
      record_bytes_(format.stored_record_bytes()),
      file_(path + "/" + layout::kStreamName, info.records * record_bytes_, progress),
      digests_(format.schema, record_bytes_) {}

void RecordInput::load() {
  const std::uint64_t most = std::max<std::uint64_t>(1, kRecordBufferBytes / record_bytes_) * record_bytes_;
  buffer_.resize(std::min(most, file_.bytes() - next_));
  file_.read(next_, buffer_);
  next_ += buffer_.size();
  digests_.update(buffer_);
  ready_ = buffer_;
}

void RecordInput::check_digests() const {
  const layout::FieldDigestList seen = digests_.digests();
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == info_.field_digests[i]) continue;
    raise(ErrorKind::Corruption, "{}: digest of field {} is {}, the manifest says {}", file_.path(),
          format_.schema.leaves()[i].name, hex_of(seen[i]), hex_of(info_.field_digests[i]));
  }
}

}  // namespace penstock::writer
