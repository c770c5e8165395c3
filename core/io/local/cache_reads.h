// CacheReads: what the page cache holds, read by a thread that does not want to wait for the device.
//
// preadv2 with RWF_NOWAIT asks anew for each read. A thread whose reads have all been there for a while goes on with
// pread, which costs a warm window 4 to 7 % less (core/io/local/cache_trust.h). One thread.
#pragma once

#include "core/io/byte_store.h"
#include "core/io/local/cache_trust.h"

#include <cstdint>
#include <span>

namespace penstock {

class CacheReads {
 public:
  /// Bytes that were there from the front of `run` on, which are at their destinations now. Neighbours in one file,
  /// inside it. After many misses in a row it tries only now and then, and says 0 in between.
  std::uint64_t read(int fd, std::span<Read* const> run);
  /// Whether it reads without asking.
  [[nodiscard]] bool trusts() const noexcept { return trust_.holds(); }

 private:
  std::uint64_t trusting_read(int fd, const Read& read);

  CacheTrust trust_{CacheTrust::Sign::Sleep};
  std::uint64_t misses_ = 0;  // in a row
};

}  // namespace penstock
