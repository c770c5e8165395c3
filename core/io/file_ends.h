// FileEnds: sizes, beginnings and ends of files that a far store asks for at once while they are opened.
//
// Opening a thousand files of other formats then takes the time of a few requests, not of thousands. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace penstock {

class FileEnds {
 public:
  /// All that a header and a fingerprint of a file want of each end.
  static constexpr std::uint64_t kBytes = 4096;

  /// The first bytes of a file, and the last of those that follow them.
  struct Ends {
    std::uint64_t bytes = 0;  // of the file
    std::string head;
    std::string tail;

    explicit Ends(std::uint64_t bytes_of_file = 0);
    [[nodiscard]] std::uint64_t tail_begin() const noexcept { return bytes - tail.size(); }
  };

  void keep(const std::string& path, Ends ends);
  /// Of the file; none: it is not kept.
  [[nodiscard]] std::optional<std::uint64_t> bytes_of(const std::string& path) const;
  /// Fills `out` from `offset` on. False: not all of that is kept.
  [[nodiscard]] bool read(const std::string& path, std::uint64_t offset, std::span<std::byte> out) const;
  void drop() noexcept;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Ends> ends_;
};

/// A store that can ask for the ends of many files at once.
class AsksAhead {
 public:
  virtual ~AsksAhead() = default;
  /// These files are about to be opened: size() and read_small() give their ends from memory until drop_ends(). Throws
  /// as ByteStore::size().
  virtual void look_ahead(const std::vector<std::string>& paths) = 0;
  virtual void drop_ends() noexcept = 0;
};

}  // namespace penstock
