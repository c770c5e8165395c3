// ByteStore and Channel: the seam to where bytes live: local files, servers of HTTP, buckets, stores of Python's.
//
// A ByteStore is asked by any thread. A Channel is owned by one thread, which submits reads and collects those that
// ended, in any order. Only wait() blocks that thread.
#pragma once

#include "core/io/read.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock {

class Channel {
 public:
  virtual ~Channel() = default;
  /// Takes the reads; each stays untouched by others until wait() returns it. May complete some of them at once. Throws
  /// only if it took none of them.
  virtual void submit(std::span<Read* const> reads) = 0;
  /// Up to done.size() reads that ended; returns how many. Waits for at most `timeout` for the first of them. Returns 0
  /// on timeout, wake(), an event that ended no read, or when nothing is under way.
  virtual std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) = 0;
  /// Makes a wait() of another thread return. Any thread.
  virtual void wake() = 0;
};

enum class ChannelMode {
  MayWait,
  NonBlocking,  // reads that would have to wait, and those of files that are not open, end NotAtHand
};

/// Where a symbolic link at a path, or on the way to it, may lead: anywhere; or, of a dataset's file, below the folder
/// that the path names it in, or below that one's parent (io/local/links.h says what else). Stores without links ignore
/// it.
enum class Links { Follow, BelowFolder, BelowParent };

class ByteStore {
 public:
  virtual ~ByteStore() = default;

  /// A new channel for the calling thread's use. Null in NonBlocking mode if no read of this store can end without
  /// waiting. Throws InvalidArgument if this machine refuses the store's way to read.
  virtual std::unique_ptr<Channel> open_channel(ChannelMode mode) = 0;

  /// Bytes of the file at `path`. Throws NotFound, IoError; InvalidArgument if it is not a regular file, Corruption if
  /// a link leads where `links` forbids.
  virtual std::uint64_t size(const std::string& path, Links links) = 0;
  /// `path` without links, where files are told by such paths; else as it is. Throws NotFound, IoError.
  virtual std::string resolve(const std::string& path) { return path; }
  /// Fills `out` with the file's bytes from `offset` on and waits for them: manifests, headers, indexes while a dataset
  /// is opened. Throws as size() does; Corruption if the file ends before `out` is full.
  virtual void read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) = 0;
  /// Where one request brings a whole file and asking for its size is another: puts the file into `text`. Throws as
  /// read_small(); IoError if there are more than `most` bytes. False, and nothing is read, where it is not so.
  virtual bool read_whole(const std::string& /*path*/, std::uint64_t /*most*/, std::string& /*text*/) { return false; }
  /// Names in the folder `path`, sorted; those of folders end with '/'. Throws NotFound, IoError.
  virtual std::vector<std::string> list(const std::string& path) = 0;
  /// The Files in this part of memory are about to go, and no read of them is under way: closes what is open for them.
  virtual void forget(std::span<const std::byte> /*files*/) noexcept {}

  /// The bytes there are not those that were written, as check values tell: forgets what is kept of them. True if they
  /// may have been kept, also if another read has doubted them since: reading them again may bring others.
  virtual bool doubt(const File& /*file*/, std::uint64_t /*offset*/, std::uint64_t /*size*/) noexcept { return false; }

  /// How many reads a channel should have under way; 1: it reads one after the other. Throws as open_channel().
  [[nodiscard]] virtual std::size_t reads_in_flight() = 0;
  /// Two ranges of a file with at most this many bytes between them are cheaper to read as one.
  [[nodiscard]] virtual std::uint64_t near_bytes() const = 0;
  /// Of such a range, at most so many percent may be between those that are wanted …
  [[nodiscard]] virtual std::uint64_t most_unwanted() const { return 100; }
  /// … and it has no more bytes than this.
  [[nodiscard]] virtual std::uint64_t most_bytes() const { return 1U << 20; }
  /// Whether a read takes a network's time, so that threads that have other reads under way wait for none.
  [[nodiscard]] virtual bool is_far() const { return false; }
  /// Called several times a second by who waits for a read and has nothing else to do; throws to have it given up.
  virtual void while_waiting() {}
  /// Reads should begin and end at multiples of this; 1: anywhere.
  [[nodiscard]] virtual std::uint64_t block_bytes() const { return 1; }
  /// How it reads: "pread", "uring", … Throws as open_channel().
  [[nodiscard]] virtual std::string name() = 0;
};

/// The store to read the files of another store through: a loader's own way to read local files. Empty: files are read
/// through the store that they name. Any thread; what it returns outlives the loader.
using StoreChoice = std::function<ByteStore&(ByteStore& files)>;

inline ByteStore& choose_store(const StoreChoice& choice, ByteStore& files) {
  return choice ? choice(files) : files;
}

}  // namespace penstock
