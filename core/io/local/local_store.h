// LocalStore: files of local and parallel file systems, through a ring of io_uring, pread, direct reads or mappings;
// keeps a bounded number of descriptors open.
//
// A process has one and hands it to whatever opens datasets. Stores that read the same files in another way share its
// descriptors (reading_by). Any thread.
#pragma once

#include "core/io/byte_store.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock {

/// Ways to read local files. Auto: a ring of io_uring where the kernel and the container allow one, else pread.
/// Direct: a ring that bypasses the page cache. Mmap: files are mapped; an error of the device is a signal.
enum class Reader { Auto, Pread, Uring, Direct, Mmap };

class LocalStore final : public ByteStore {
 public:
  /// Files are opened O_RDONLY | O_CLOEXEC, must be regular and exactly File::bytes long (else Corruption naming both
  /// sizes), and are advised POSIX_FADV_RANDOM. At most `max_open_files` descriptors are cached, and as many
  /// mappings (0, kShareOfLimit: shares of what the process may have). A short read is Corruption, EINTR is repeated.
  /// After fork the child uses caches of its own. Reads by Reader::Auto: a ring where one reads here, tried once, and
  /// pread for every channel that gets none. A file that changes while it is open is Corruption (ChangedFile), seen
  /// within a second or a little more.
  explicit LocalStore(std::size_t max_open_files = 0);

  /// A store of files that are written while they are read, with descriptors of its own.
  [[nodiscard]] std::shared_ptr<LocalStore> of_changing_files() const;

  /// A store of the same files that reads in this way, with this one's descriptors and mappings.
  [[nodiscard]] std::shared_ptr<ByteStore> reading_by(Reader reader) const;
  /// The same for a thread that makes a channel for `reads` reads alone: a ring pays only for a bulk of them.
  [[nodiscard]] std::shared_ptr<ByteStore> reading_once(std::uint64_t reads) const;

  std::unique_ptr<Channel> open_channel(ChannelMode mode) override;
  std::uint64_t size(const std::string& path, Links links) override;
  std::string resolve(const std::string& path) override;
  void read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) override;
  std::vector<std::string> list(const std::string& path) override;
  void forget(std::span<const std::byte> files) noexcept override;
  [[nodiscard]] std::size_t reads_in_flight() override;
  [[nodiscard]] std::uint64_t near_bytes() const override;
  [[nodiscard]] std::uint64_t block_bytes() const override;
  [[nodiscard]] std::string name() override;

 private:
  struct Files;

  LocalStore(std::shared_ptr<Files> files, Reader reader) : files_(std::move(files)), reader_(reader) {}
  [[nodiscard]] Reader resolve() const;

  const std::shared_ptr<Files> files_;
  const Reader reader_;
};

}  // namespace penstock
