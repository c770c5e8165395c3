#include "writer/shards/pack_table_writer.h"

#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
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

std::string partial_prefix(const std::string& name) {
  return std::string(layout::kPartialPrefix) + name + "-";
}

// unique_suffix()'s form: a number, a hyphen, 16 digits.
bool is_unique_suffix(std::string_view text) noexcept {
  constexpr std::size_t kDigits = 16;
  const std::size_t hyphen = text.find('-');
  return hyphen != std::string_view::npos && hyphen > 0 && text.size() == hyphen + 1 + kDigits &&
         text.find_first_not_of("0123456789") == hyphen &&
         text.find_first_not_of("0123456789abcdef", hyphen + 1) == std::string_view::npos;
}

// Unfinished tables of this name, which no writer has locked: their writers were killed, or could not remove them. A
// folder that cannot be listed keeps them.
void remove_dead(const Descriptor& folder, const std::string& name, const std::string& path) {
  const std::string prefix = partial_prefix(name);
  std::vector<std::string> names;
  try {
    names = names_in(folder.get(), path);
  } catch (const Error&) {
    return;
  }
  for (const std::string& each : names) {
    if (!each.starts_with(prefix) || !is_unique_suffix(std::string_view(each).substr(prefix.size()))) continue;
    const Descriptor file(::openat(folder.get(), each.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() < 0 || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    ::unlinkat(folder.get(), each.c_str(), 0);
  }
}

// Locks a new file. False: before that another run took it for a dead one, and removes it.
bool hold(const Descriptor& folder, const Descriptor& file, const std::string& name) noexcept {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;  // without locks nothing is dead
  struct stat status {};
  return ::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

}  // namespace

PackTableWriter::PackTableWriter(layout::DatasetPtr dataset, const layout::PackingRule& rule, StoreChoice through,
                                 std::string path, std::shared_ptr<const Chosen> chosen, std::string where)
    : path_(std::move(path)),
      name_(std::filesystem::path(path_).filename().string()),
      packer_(std::move(dataset), rule, std::move(through), std::move(chosen), std::move(where)) {
  where_ = layout::write_pack_where(packer_.header());
  if (name_.empty()) raise(ErrorKind::InvalidArgument, "\"{}\": the name of a file is wanted", path_);
  folder_ = open_folder(AT_FDCWD, folder_of(path_), folder_of(path_));
  struct stat status {};
  if (::fstatat(folder_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) raise_exists(path_);
  remove_dead(folder_, name_, folder_of(path_));
  do {
    partial_ = partial_prefix(name_) + unique_suffix();
    file_ = create_file(folder_.get(), partial_, path_);
  } while (!hold(folder_, file_, partial_));
  is_there_ = true;
  try {
    const std::vector<std::byte> header(layout::kPackHeaderBytes);
    write_all(file_.get(), header, 0, path_);
  } catch (const Error& error) {
    give_up(error);
  } catch (...) {  // of what was not constructed the destructor is not called
    ::unlinkat(folder_.get(), partial_.c_str(), 0);
    throw;
  }
}

// Removes the unfinished file, or names it: nothing else would.
void PackTableWriter::give_up(const Error& error) {
  if (!is_there_ || ::unlinkat(folder_.get(), partial_.c_str(), 0) == 0) {
    is_there_ = false;
    throw Error(error);
  }
  const std::string why = std::generic_category().message(errno);
  throw Error(error.kind(),
              fmt::format("{}; its unfinished file {} stays, since it cannot be removed ({}): the next run does",
                          error.what(), layout::path_in(folder_of(path_), partial_), why),
              error.error_number(), error.path());
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
  try {
    return pack(documents);
  } catch (const Error& error) {
    give_up(error);
  }
}

bool PackTableWriter::pack(std::uint64_t documents) {
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
  try {
    return finish();
  } catch (const Error& error) {
    give_up(error);
  }
}

layout::PackHeader PackTableWriter::finish() {
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
  } catch (const Error& error) {  // whether it would last is not known: it is not published
    if (::unlinkat(folder_.get(), name_.c_str(), 0) == 0) throw;
    throw Error(error.kind(),
                fmt::format("{}: it was written, but may not outlast a loss of power: {}", path_, error.what()),
                error.error_number(), error.path());
  }
  return header;
}

}  // namespace penstock::writer
