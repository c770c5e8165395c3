// System calls as the writer needs them: whole writes, synced folders, renames that replace nothing; errors name the
// file.
//
// Thread rule: free functions, any thread; a Descriptor belongs to one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::writer {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  void reset() noexcept;
  /// Closes it; throws IoError, since some file systems report a failed write only here.
  void close(const std::string& path);

 private:
  int fd_ = -1;
};

/// Opens a folder for *at() calls and fsync. Throws NotFound, IoError.
Descriptor open_folder(int at, const std::string& name, const std::string& path);

/// Creates the file `name` in folder `at`; it must not exist.
Descriptor create_file(int at, const std::string& name, const std::string& path);

/// Opens a regular file of a shard for reading, and gives its size. Throws NotFound, IoError, Corruption (not a regular
/// file, or a link out of the dataset).
std::pair<Descriptor, std::uint64_t> open_regular(const std::string& path);

/// Writes all bytes at the descriptor's place; repeats after EINTR and short writes. `offset` is for the message.
void write_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path);

/// Reads exactly out.size() bytes at `offset`. Throws Corruption if the file ends before.
void read_exactly(int fd, std::span<std::byte> out, std::uint64_t offset, const std::string& path);

/// Has the kernel begin to write these bytes to the disk. Advice: hardly anything is waited
/// for (a place in the device's queue), a refusal changes nothing.
void start_writing(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

/// fsync. A failure is final: what was to be written may be gone, so nobody may try again and call it good.
void sync_file(int fd, const std::string& path);

/// fsync of a folder; where the file system knows no such thing (EINVAL) there is nothing to wait for.
void sync_folder(int fd, const std::string& path);

/// Renames within folder `at`; fails with EEXIST or ENOTEMPTY, returned like 0 for success, where `to` exists. Throws
/// IoError for all else.
int rename_new(int at, const std::string& from, const std::string& to, const std::string& path);

/// Names in the folder `fd`, without "." and "..", sorted.
std::vector<std::string> names_in(int fd, const std::string& path);

/// Removes folder `name` of `at` and the files in it, or file `name`; false, with errno, if something of it is left.
/// `depth` levels of folders in it are removed too.
bool remove_folder(int at, const std::string& name, int depth = 0) noexcept;

/// "<pid>-<16 random hex digits>": makes the name of unfinished work unique.
std::string unique_suffix();

}  // namespace penstock::writer
