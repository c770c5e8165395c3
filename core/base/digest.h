// Digest: XXH3-128, the check value of content: a shard's, an order's table.
//
// A digest tells content apart by accident, not by malice. Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock {

/// The 16 bytes of a digest, most significant first (XXH128_canonical_t).
using DigestBytes = std::array<std::byte, 16>;

/// 32 lower-case hex digits; and what such a text says, nullopt for any other text.
std::string hex_of(const DigestBytes& digest);
void append_hex(std::string& text, const DigestBytes& digest);
std::optional<DigestBytes> parse_digest(std::string_view hex) noexcept;

/// XXH3-128 of what update() was given, end to end.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  /// A number as 8 little-endian bytes.
  void update_u64(std::uint64_t value);

  [[nodiscard]] DigestBytes bytes() const;
  [[nodiscard]] std::string hex() const { return hex_of(bytes()); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// XXH3-128 of `bytes` at once.
DigestBytes digest_of(std::span<const std::byte> bytes);

}  // namespace penstock
