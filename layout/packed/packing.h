// Packing: which documents go together into a row of a fixed length. Lengths in, rows out: no files, no threads.
//
// Documents are taken in groups that follow one another. Those of a group go into rows by decreasing length, equal ones
// in their order: into the row with the least room that holds them (Fit::Best) or into the first one that does
// (Fit::First), of equal rooms the first row's; where none does, a new row begins. The rows are a function of the
// lengths and the rule alone. With `max_document` documents are cut at a length below the row's before. With
// `max_documents` a row has at most so many sequences, of which what is left of it is one: the last place of a row is
// for a piece that fills it. A Packer is one thread's at a time; what it makes is a value.
#pragma once

#include "layout/packed/rooms.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::layout {

enum class Fit : std::uint8_t {
  Best,
  First,
  Next,  // Fill::Exact: in their order
};

/// The treatment of the rest of a row.
enum class Fill : std::uint8_t {
  Pad,    // no record is there
  Exact,  // there is none: the row's last document is cut where it ends (layout/packed/exact_packing.h)
};

/// The treatment of a document that is longer than PackingRule::most().
enum class LongDocuments : std::uint8_t {
  Split,     // pieces of that length, and the rest
  Truncate,  // its first records, so many of them
  Drop,      // it is left out
  Refuse,    // an error
};

struct PackingRule {
  std::uint64_t window = 0;  // records of a row
  Fit fit = Fit::Best;
  std::uint64_t group = 65'536;  // documents
  LongDocuments long_documents = LongDocuments::Split;
  std::uint64_t multiple_of = 1;    // each piece takes a multiple of this many records
  std::uint64_t max_document = 0;   // records of a piece at most; 0: those of a row
  std::uint64_t max_documents = 0;  // sequences of a row at most; 0: any number
  Fill fill = Fill::Pad;
  std::uint64_t buffer = 0;  // Fill::Exact, Fit::Best: documents among which one is looked for …
  std::uint64_t refill = 0;  // … and how many come into it together

  [[nodiscard]] std::uint64_t most() const noexcept { return max_document == 0 ? window : max_document; }
  bool operator==(const PackingRule&) const = default;
};

/// Longer rows are not packed: the rooms that there are have a table of 4 bytes each.
inline constexpr std::uint64_t kMostPackedWindow = std::uint64_t{1} << 24;

/// Throws InvalidArgument: a window of 0 or above kMostPackedWindow, no multiple of multiple_of; a group of 0, or of
/// 2^32 documents; multiple_of 0; a max_document above the window, or by which documents are neither split nor
/// truncated; max_documents 1 of rows that are padded; what is not of this fill.
void check_packing_rule(const PackingRule& rule);

/// "best", "first", "next"; "pad", "exact"; "split", "truncate", "drop", "refuse". The parsers throw InvalidArgument
/// for other words.
std::string_view fit_name(Fit fit) noexcept;
std::string_view fill_name(Fill fill) noexcept;
std::string_view long_name(LongDocuments what) noexcept;
Fit parse_fit(std::string_view name);
Fill parse_fill(std::string_view name);
LongDocuments parse_long(std::string_view name);

/// A piece of a document: records [part * most, (part + 1) * most) of it, as far as it has them. 8 bytes.
struct PackedPiece {
  static constexpr unsigned kDocumentBits = 40;
  static constexpr std::uint64_t kMostDocuments = std::uint64_t{1} << kDocumentBits;
  static constexpr std::uint64_t kMostParts = std::uint64_t{1} << (64 - kDocumentBits);

  std::uint64_t bits = 0;

  static PackedPiece of(std::uint64_t document, std::uint64_t part) noexcept {
    return {part << kDocumentBits | document};
  }
  [[nodiscard]] std::uint64_t document() const noexcept { return bits & (kMostDocuments - 1); }
  [[nodiscard]] std::uint64_t part() const noexcept { return bits >> kDocumentBits; }
  bool operator==(const PackedPiece&) const = default;
};

/// Throws InvalidArgument: documents [first, first + count) are more than kMostDocuments.
void check_documents(std::uint64_t first, std::uint64_t count);

/// How many pieces of `most` records a document of `length`, which is not 0, has. Throws InvalidArgument: more than
/// kMostParts.
std::uint64_t count_parts(const PackingRule& rule, std::uint64_t document, std::uint64_t length);

/// Rows end to end: row i has pieces [row_ends[i - 1], row_ends[i]), from 0 on for the first.
struct PackedRows {
  std::vector<std::uint64_t> row_ends;
  std::vector<PackedPiece> pieces;  // of a row in the order in which they lie in it
  std::uint64_t records = 0;        // of all pieces
  std::uint64_t left_out = 0;       // documents without a piece: dropped, or without records …
  std::uint64_t cut = 0;            // … and records that are in no row

  bool operator==(const PackedRows&) const = default;
};

class Packer {
 public:
  /// Takes a rule of Fill::Pad. Throws as check_packing_rule().
  explicit Packer(const PackingRule& rule);

  /// Appends the rows of documents first_document, first_document + 1, … that have these lengths: the documents of a
  /// shard, or whole groups of them. Throws InvalidArgument: a document that is too long for LongDocuments::Refuse, or
  /// of more than kMostParts pieces; more than kMostDocuments documents.
  void add(std::uint64_t first_document, std::span<const std::uint64_t> lengths, PackedRows& out);

 private:
  void pack_group(std::uint64_t first_document, std::span<const std::uint64_t> lengths, PackedRows& out);
  void cut(std::uint64_t first_document, std::span<const std::uint64_t> lengths, PackedRows& out);
  void sort();
  void fit_best();
  void fit_first();
  void begin_rows();
  void end_rows();
  [[nodiscard]] std::uint32_t new_row();
  [[nodiscard]] std::uint32_t last_row(std::uint32_t wanted) const noexcept;
  void push(std::vector<std::uint32_t>& heaps, std::uint32_t room, std::uint32_t row) noexcept;
  std::uint32_t pop(std::vector<std::uint32_t>& heaps, std::uint32_t room) noexcept;
  [[nodiscard]] bool is_last(std::uint32_t row) const noexcept;
  void append(PackedRows& out);
  [[nodiscard]] std::uint32_t units(std::uint32_t length) const noexcept;
  [[nodiscard]] std::uint32_t merge(std::uint32_t a, std::uint32_t b) noexcept;

  const PackingRule rule_;
  const std::uint32_t row_units_;  // of multiple_of records, in a row
  // The present group's. Rows with equal room are a heap (skew heap: Sleator and Tarjan, "Self-adjusting heaps", 1986)
  // by their number.
  std::vector<PackedPiece> pieces_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::uint32_t> sorted_;  // numbers of pieces, in the order in which they are placed
  std::vector<std::uint32_t> scratch_;
  std::vector<std::uint32_t> row_of_;  // by piece
  std::uint32_t rows_ = 0;
  Rooms rooms_;
  std::vector<std::uint32_t> heap_of_room_;  // Fit::Best: its first row
  std::vector<std::uint32_t> last_of_room_;  // max_documents: rows with one place left, which only this room fills
  std::vector<std::uint32_t> count_of_;      // max_documents: pieces, by row
  std::vector<std::uint32_t> left_;          // by row
  std::vector<std::uint32_t> right_;
  std::vector<std::uint32_t> room_of_;     // by row
  std::vector<std::uint32_t> most_rooms_;  // Fit::First: a tree of maxima, rows at its leaves
};

}  // namespace penstock::layout
