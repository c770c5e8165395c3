#include "writer/files/output_file.h"

#include "core/base/crc32c.h"
#include "layout/dataset/format.h"

#include <algorithm>

namespace penstock::writer {
namespace {

constexpr std::size_t kOutputBufferBytes = 1U << 20;
// The disk is to be at work while the rest is made, not only from the sync at the end on.
constexpr std::uint64_t kStartEvery = 8U << 20;
constexpr std::size_t kCrcBuffer = 16U << 10;  // values
// A flush of a full buffer must end at the end of a block: each block's CRC is then made from one flush.
static_assert(kOutputBufferBytes % layout::kCrcBlockBytes == 0);

}  // namespace

OutputFile::OutputFile(int at, const std::string& name, const std::string& path)
    : path_(path),
      file_(create_file(at, name, path)),
      crc_file_(create_file(at, name + layout::kCrcSuffix, path + layout::kCrcSuffix)) {}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (buffer_.empty() && bytes.size() >= kOutputBufferBytes) {
      put(bytes.first(kOutputBufferBytes));  // as it would lie in the buffer
      bytes = bytes.subspan(kOutputBufferBytes);
      continue;
    }
    const std::size_t part = std::min(bytes.size(), kOutputBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (buffer_.size() == kOutputBufferBytes) flush();
  }
}

void OutputFile::flush() {
  put(buffer_);
  buffer_.clear();
}

void OutputFile::put(std::span<const std::byte> bytes) {
  crc32c_blocks(bytes, layout::kCrcBlockBytes, crcs_);
  write_all(file_.get(), bytes, written_, path_);
  written_ += bytes.size();
  if (written_ % kStartEvery == 0 && !bytes.empty()) start_writing(file_.get(), written_ - kStartEvery, kStartEvery);
  if (crcs_.size() >= kCrcBuffer) flush_crcs();
}

void OutputFile::flush_crcs() {
  write_all(crc_file_.get(), std::as_bytes(std::span(crcs_)), crcs_written_ * 4, path_ + layout::kCrcSuffix);
  crcs_written_ += crcs_.size();
  crcs_.clear();
}

void OutputFile::finish() {
  flush();
  flush_crcs();
  sync_file(file_.get(), path_);
  file_.close(path_);
  sync_file(crc_file_.get(), path_ + layout::kCrcSuffix);
  crc_file_.close(path_ + layout::kCrcSuffix);
}

}  // namespace penstock::writer
