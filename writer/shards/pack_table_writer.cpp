#include "writer/shards/pack_table_writer.h"

#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "layout/dataset/format.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kBlock = layout::kCrcBlockBytes;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

[[noreturn]] void raise_exists(const std::string& path) {
  raise(ErrorKind::InvalidArgument, "{}: it is there already: remove it, or give another name", path);
}

}  // namespace

PackTableWriter::PackTableWriter(layout::DatasetPtr dataset, const layout::PackingRule& rule, StoreChoice through,
                                 std::string path, std::shared_ptr<const Chosen> chosen, std::string where)
    : path_(std::move(path)),
      name_(std::filesystem::path(path_).filename().string()),
      partial_(std::string(layout::kPartialPrefix) + name_ + "-" + unique_suffix()),
      packer_(std::move(dataset), rule, std::move(through), std::move(chosen), std::move(where)) {
  where_ = layout::write_pack_where(packer_.header());
  if (name_.empty()) raise(ErrorKind::InvalidArgument, "\"{}\": the name of a file is wanted", path_);
  folder_ = open_folder(AT_FDCWD, folder_of(path_), folder_of(path_));
  struct stat status {};
  if (::fstatat(folder_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) raise_exists(path_);
  file_ = create_file(folder_.get(), partial_, path_);
  is_there_ = true;
  const std::vector<std::byte> header(layout::kPackHeaderBytes);
  try {
    write_all(file_.get(), header, 0, path_);
  } catch (...) {
    ::unlinkat(folder_.get(), partial_.c_str(), 0);  // of what was not constructed the destructor is not called
    throw;
  }
}

PackTableWriter::~PackTableWriter() {
  if (is_there_) ::unlinkat(folder_.get(), partial_.c_str(), 0);
}

// Whole blocks are written; the rest waits.
void PackTableWriter::append(std::span<const std::byte> bytes) {
  block_.insert(block_.end(), bytes.begin(), bytes.end());
  const std::size_t whole = block_.size() / kBlock * kBlock;
  const std::span<const std::byte> ready(block_.data(), whole);
  crc32c_blocks(ready, kBlock, checks_);
  write_all(file_.get(), ready, layout::kPackHeaderBytes + written_, path_);
  written_ += whole;
  block_.erase(block_.begin(), block_.begin() + static_cast<std::ptrdiff_t>(whole));
}

void PackTableWriter::pad() {
  const std::vector<std::byte> zeros((kBlock - block_.size() % kBlock) % kBlock);
  append(zeros);
}

bool PackTableWriter::step(std::uint64_t documents) {
  layout::PackedRows& rows = packer_.rows();
  const std::size_t before = rows.row_ends.size();
  const bool more = packer_.step(documents);
  // Rows count on from pieces that were written away.
  for (std::size_t row = before; row < rows.row_ends.size(); ++row) rows.row_ends[row] += pieces_;
  append(std::as_bytes(std::span(rows.pieces)));
  pieces_ += rows.pieces.size();
  rows.pieces.clear();
  return more;
}

layout::PackHeader PackTableWriter::commit() {
  layout::PackHeader header = packer_.header();
  layout::check_has_rows(header, packer_.dataset().path);
  header.pieces = pieces_;
  header.where_bytes = where_.size();
  pad();
  append(std::as_bytes(std::span(packer_.rows().row_ends)));
  pad();
  const auto checks = std::as_bytes(std::span(checks_));
  write_all(file_.get(), checks, layout::kPackHeaderBytes + written_, path_);
  write_all(file_.get(), std::as_bytes(std::span(where_)), header.where_at(), path_);
  if (::lseek(file_.get(), 0, SEEK_SET) != 0) raise_system(errno, "seek in", path_);
  const std::string text = layout::write_pack_header(header);
  write_all(file_.get(), std::as_bytes(std::span(text)), 0, path_);
  sync_file(file_.get(), path_);
  file_.close(path_);
  if (rename_new(folder_.get(), partial_, name_, path_) != 0) raise_exists(path_);
  is_there_ = false;
  try {
    sync_folder(folder_.get(), folder_of(path_));
  } catch (...) {
    ::unlinkat(folder_.get(), name_.c_str(), 0);  // whether it would last is not known: it is not published
    throw;
  }
  return header;
}

}  // namespace penstock::writer
