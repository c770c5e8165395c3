// The bytes of which a task's digest is made: what RawDocument.digested() of bindings/penstock/_from/text/raw.py gives
// for each document. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace penstock::text {

/// Pieces of one run of bytes: piece i is [begins[i], ends[i]); without `begins` it begins where the one before ended.
struct Pieces {
  std::string_view bytes;
  std::span<const std::uint64_t> begins;
  std::span<const std::uint64_t> ends;

  [[nodiscard]] std::uint64_t begin(std::size_t i) const noexcept {
    return begins.empty() ? (i == 0 ? 0 : ends[i - 1]) : begins[i];
  }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    return {bytes.data() + begin(i), static_cast<std::size_t>(ends[i] - begin(i))};
  }
};

/// Throws InvalidArgument, naming `what`, unless every piece lies in the bytes, and there are as many begins as ends,
/// or none.
void check_pieces(const Pieces& pieces, const char* what);

/// Bytes that write_digested() writes. `known` are the documents' metadata; without ends: none is kept. Throws
/// InvalidArgument as check_pieces(), and for another number of metadata than of documents.
[[nodiscard]] std::uint64_t digested_bytes(const Pieces& documents, const Pieces& known);
/// For each document the bytes of itself and of its metadata, as decimals ("12,3:"), and the two. `out` has
/// digested_bytes().
void write_digested(const Pieces& documents, const Pieces& known, char* out);

}  // namespace penstock::text
