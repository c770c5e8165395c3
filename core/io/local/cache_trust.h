// CacheTrust: whether a thread may go on as if all it reads were in the page cache, without asking each time.
//
// It may after so many reads in a row that were there, and for as long as it does not have to wait. Of one thread.
#pragma once

#include <cstdint>

namespace penstock {

class CacheTrust {
 public:
  /// What tells that it had to wait: that it slept, whatever for; or that a page of a mapping was read for it.
  enum class Sign { Sleep, Fault };

  explicit CacheTrust(Sign sign) noexcept : sign_(sign) {}

  /// Whether to read without asking.
  [[nodiscard]] bool holds() const noexcept { return hits_ >= kEnough; }
  /// It was asked: the bytes were there.
  void hit() noexcept;
  /// It was asked: they were not.
  void miss() noexcept { hits_ = 0; }
  /// It was not asked, and read. Looks whether that had to wait, each sixteenth time.
  void read() noexcept;
  /// Looks now.
  void check() noexcept;

 private:
  static constexpr std::uint64_t kEnough = 256;  // in a row
  static constexpr std::uint64_t kCheckEvery = 16;

  [[nodiscard]] std::int64_t waits() const noexcept;

  const Sign sign_;
  std::uint64_t hits_ = 0;
  std::uint64_t reads_ = 0;  // unasked
  std::int64_t waits_ = 0;   // of this thread, when it began to be trusted
};

}  // namespace penstock
