// BlockShare: which blocks of a dataset's files a cache keeps.
//
// A file's blocks are spread evenly by multiples of the golden ratio, from a beginning of the file's own, so that many
// small files are kept in proportion too. A larger share keeps what a smaller one does: nothing is evicted. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace penstock {

inline constexpr std::uint64_t kCachePage = 4096;
inline constexpr std::uint64_t kCacheBlock = 1 << 20;

class BlockShare {
 public:
  /// Shares are counted in parts of this many.
  static constexpr std::uint64_t kParts = 1 << 16;

  BlockShare() = default;
  explicit BlockShare(std::uint64_t parts) : parts_(parts) {}

  /// A file as far as its share goes.
  struct File {
    std::uint64_t phase = 0;
    std::uint64_t bytes = 0;
  };

  /// Where the file of this name begins.
  static std::uint64_t phase_of(std::string_view name);
  /// The largest share of `files` that takes at most `most_bytes` of a disk, check values and whole pages counted.
  /// Takes a nanosecond for each block.
  static BlockShare within(std::span<const File> files, std::uint64_t most_bytes);

  [[nodiscard]] bool keeps(std::uint64_t phase, std::uint64_t block) const noexcept {
    return part(phase, block) < parts_;
  }
  [[nodiscard]] std::uint64_t parts() const noexcept { return parts_; }
  [[nodiscard]] double share() const noexcept { return static_cast<double>(parts_) / kParts; }

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio

  static std::uint64_t part(std::uint64_t phase, std::uint64_t block) noexcept {
    return (phase + block * kGolden) >> 48U;
  }

  std::uint64_t parts_ = 0;
};

}  // namespace penstock
