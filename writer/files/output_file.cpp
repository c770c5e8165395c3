#include "writer/files/output_file.h"

#include "core/base/crc32c.h"
#include "layout/dataset/format.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace penstock::writer {
namespace {

constexpr std::size_t kPiece = OutputFile::kPieceBytes;
// The disk is to be at work while the rest is made, not only from the sync at the end on.
constexpr std::uint64_t kStartEvery = 8U << 20;
constexpr std::size_t kCrcBuffer = 16U << 10;  // values
// A flush of a full buffer must end at the end of a block: each block's CRC is then made from one flush.
static_assert(kPiece % layout::kCrcBlockBytes == 0);
static_assert(kStartEvery % kPiece == 0);
// Room is asked for as the file grows, up to so much at once: what is left over goes back at the end.
constexpr std::uint64_t kMostRoom = 16U << 20;
constexpr std::uint64_t kNoMoreRoom = UINT64_MAX;

// docs/decisions.md, "Room on ext4 is asked for ahead".
bool gains_by_room(int fd) noexcept {
  struct statfs status {};
  return ::fstatfs(fd, &status) == 0 && status.f_type == EXT4_SUPER_MAGIC;
}

}  // namespace

OutputFile::OutputFile(int at, const std::string& name, const std::string& path)
    : path_(path),
      file_(create_file(at, name, path)),
      crc_file_(create_file(at, name + layout::kCrcSuffix, path + layout::kCrcSuffix)) {}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (buffer_.empty() && bytes.size() >= kPiece) {
      put(bytes.first(kPiece));  // as it would lie in the buffer
      bytes = bytes.subspan(kPiece);
      continue;
    }
    const std::size_t part = std::min(bytes.size(), kPiece - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (buffer_.size() == kPiece) flush();
  }
}

void OutputFile::flush() {
  put(buffer_);
  buffer_.clear();
}

// A refusal changes nothing: a disk that is too full for it may have room for the file.
void OutputFile::ask_for_room() noexcept {
  if (room_ == 0 && !gains_by_room(file_.get())) room_ = kNoMoreRoom;
  if (room_ == kNoMoreRoom) return;
  const std::uint64_t more = std::clamp<std::uint64_t>(written_, kPiece, kMostRoom);
  const bool has =
      ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(room_), static_cast<off_t>(more)) == 0;
  room_ = has ? room_ + more : kNoMoreRoom;
}

void OutputFile::put(std::span<const std::byte> bytes) {
  if (bytes.size() == kPiece && written_ + bytes.size() > room_) ask_for_room();
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
  if (room_ > written_ && ::ftruncate(file_.get(), static_cast<off_t>(written_)) != 0) {
    raise_system(errno, "give back room of", path_);
  }
  sync_file(file_.get(), path_);
  file_.close(path_);
  sync_file(crc_file_.get(), path_ + layout::kCrcSuffix);
  crc_file_.close(path_ + layout::kCrcSuffix);
}

}  // namespace penstock::writer
