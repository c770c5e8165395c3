// PackTable: the pieces of documents of each packed row; made in memory when a view is, or a file that
// `penstock pack` made before.
//
// The file (docs/format.md): a header of kPackHeaderBytes, a sealed JSON text and zeros; the pieces, u64 each; the ends
// of the rows, u64 each; the CRC32C, u32, of each 4 KiB of what lies between; a condition for which the header has no
// room, a sealed JSON text. Each part but that begins at a multiple of 4 KiB.
// A row costs a range of the ends and one of the pieces, in two rounds; the checks are read with them. Immutable; any
// thread.
#pragma once

#include "core/io/open_store.h"
#include "core/rows/chosen.h"
#include "core/rows/source.h"
#include "layout/dataset.h"
#include "layout/packed/exact_packing.h"
#include "layout/packed/packing.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace penstock::layout {

inline constexpr std::string_view kPackFormatName = "penstock pack table";
inline constexpr std::uint64_t kPackVersion = 2;
/// Version of tables whose condition stands behind the checks, since it is too long for the header.
inline constexpr std::uint64_t kPackVersionLong = 3;
/// Version of tables of all documents whose rule says no more than a penstock of before version 2 knew, which still
/// reads them.
inline constexpr std::uint64_t kPackVersionPlain = 1;
inline constexpr std::uint64_t kPackHeaderBytes = 4096;
/// The longest condition of a table.
inline constexpr std::uint64_t kMostPackWhereBytes = std::uint64_t{1} << 21;

/// A table's description of itself.
struct PackHeader {
  PackingRule rule;
  std::string fingerprint;      // of the dataset …
  std::uint64_t documents = 0;  // … and how many it has
  std::uint64_t rows = 0;
  std::uint64_t pieces = 0;
  std::uint64_t records = 0;   // of all pieces
  std::uint64_t left_out = 0;  // as PackedRows has it
  std::uint64_t cut = 0;
  std::string where = {};         // what views say of the documents, as JSON (choice_json()); "" where all are packed
  std::uint64_t where_bytes = 0;  // of the text behind the checks that holds `where`; 0: the header does

  /// Beginnings of the parts, and the file's size. Throws Corruption where 64 bits do not count them.
  [[nodiscard]] std::uint64_t ends_at() const;
  [[nodiscard]] std::uint64_t checks_at() const;
  [[nodiscard]] std::uint64_t where_at() const;
  [[nodiscard]] std::uint64_t file_bytes() const;
  bool operator==(const PackHeader&) const = default;
};

/// The text behind the checks of a condition for which the header has no room, whatever its numbers become; "" where it
/// has. Throws InvalidArgument for a condition of more than kMostPackWhereBytes.
std::string write_pack_where(const PackHeader& header);
/// kPackHeaderBytes, by its `where_bytes`.
std::string write_pack_header(const PackHeader& header);
/// All but a condition that stands behind the checks. Throws Corruption; InvalidArgument for a version that this
/// penstock does not know.
PackHeader parse_pack_header(std::string_view bytes, const std::string& what);
/// Throws InvalidArgument for a packing without rows of the dataset at `path`: no view has none.
void check_has_rows(const PackHeader& header, const std::string& path);

class PackTable {
 public:
  /// A table in memory.
  PackTable(const PackHeader& header, PackedRows rows);
  /// The file at `location`. Throws NotFound, IoError, Corruption; InvalidArgument if it is not of this dataset.
  PackTable(const Location& location, const Dataset& dataset);
  PackTable(const PackTable&) = delete;
  PackTable& operator=(const PackTable&) = delete;
  ~PackTable();

  [[nodiscard]] const PackHeader& header() const noexcept { return header_; }

  /// A row's pieces on their way; in the row's arena.
  struct Pieces {
    std::span<const PackedPiece> pieces;  // once plan() was false
    void* reading = nullptr;
  };
  /// As Source::plan(): appends the reads of `round` for row number `number`; false, and nothing appended, once its
  /// pieces are known. Throws Corruption.
  bool plan(Row& row, std::uint64_t number, unsigned round, Pieces& pieces, Reads& out) const;

 private:
  const PackHeader header_;
  const PackedRows rows_;                   // in memory
  const std::shared_ptr<ByteStore> store_;  // of a file
  const std::optional<File> file_;
};

/// Packs the documents of a dataset, some at a time, so that its caller can tell how far it is, stop, or write away
/// what is there. One thread at a time; waits for reads.
class DatasetPacker {
 public:
  /// `chosen`: the documents that are packed, and `where` what views say of them; null: all. Throws InvalidArgument: as
  /// check_packing_rule(); a dataset without documents of records; a choice among others.
  DatasetPacker(DatasetPtr dataset, const PackingRule& rule, StoreChoice through,
                std::shared_ptr<const Chosen> chosen = nullptr, std::string where = {});

  /// Packs about `documents` more, whole groups; false once all are packed. Throws as the packers and
  /// read_document_lengths() do.
  bool step(std::uint64_t documents);
  /// Documents that were packed.
  [[nodiscard]] std::uint64_t done() const noexcept { return next_; }
  /// Rows so far, but for those that were taken away; row_ends count on.
  [[nodiscard]] PackedRows& rows() noexcept { return rows_; }
  [[nodiscard]] const Dataset& dataset() const noexcept { return *dataset_; }
  /// The table of rows(), which has everything; `documents` is how many the dataset has.
  [[nodiscard]] PackHeader header() const;

 private:
  bool step_chosen(std::uint64_t documents);
  void pack_waiting(std::size_t documents, bool ends_shard);

  const DatasetPtr dataset_;
  const PackingRule rule_;
  const StoreChoice through_;
  const std::shared_ptr<const Chosen> chosen_;
  const std::string where_;
  std::vector<std::uint64_t> waiting_;  // lengths of chosen documents that are not packed yet
  std::uint64_t packed_ = 0;            // chosen documents
  std::variant<Packer, ExactPacker> packer_;
  PackedRows rows_;
  std::uint64_t next_ = 0;  // document
};

}  // namespace penstock::layout
