// JsonLines: texts or token ids, and metadata, of JSON lines, as bindings/penstock/_from/text/extract.py and batches.py
// find them, byte for byte. What it does not read for sure as they do is refused, line by line, and goes to them.
//
// One thread at a time; others may have parsers of their own. Nothing of a block is kept.
#pragma once

#include "text/digested.h"
#include "text/written.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock::text {

/// How an entry of metadata is stored; None: there are none.
enum class EntryCodec { None, Json, Msgpack, Raw };

/// The columns that are taken of each line.
struct LineColumns {
  std::string column;
  bool is_ids = false;  // the column holds token ids, else a text
  /// The columns that are metadata, in this order; none named: all others, in the line's order. Empty for None.
  std::optional<std::vector<std::string>> metadata;
  EntryCodec codec = EntryCodec::None;
};

/// Document i has texts or ids [ends[i - 1], ends[i]) and entry [entry_ends[i - 1], entry_ends[i]); nothing if it was
/// refused.
struct ParsedLines {
  ByteVector texts;  // UTF-8
  std::vector<std::int64_t> ids;
  std::vector<std::uint64_t> ends;  // in texts, or in ids
  ByteVector entries;
  std::vector<std::uint64_t> entry_ends;  // empty where there are no entries
  std::vector<std::uint32_t> refused;     // ascending
};

class JsonLines {
 public:
  /// Throws InvalidArgument where `metadata` is empty and there is a codec, or the other way round.
  explicit JsonLines(LineColumns columns);
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  /// Reads these pieces of a block, each a line. Throws InvalidArgument for pieces outside of it, or more than 2^32 of
  /// them. Lines of up to 16 MiB share one parser's memory, about 14 times the longest; that of longer ones is freed.
  [[nodiscard]] ParsedLines parse(const Pieces& lines);

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace penstock::text
