// Lines of a block of a file of text or of JSON lines: which are documents, and where they lie. Any thread.
//
// A line ends with `\n` alone. White space is Python's of bytes: space, \t, \n, \v, \f, \r.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::text {

/// Documents in their order: bytes [begins[i], ends[i]) of the block are its payload, numbers[i] its line, from 0.
struct Lines {
  std::vector<std::uint64_t> begins;
  std::vector<std::uint64_t> ends;
  std::vector<std::uint64_t> numbers;
  std::uint64_t lines = 0;  // those without a document too
};

/// Cuts whole lines, of which the last may lack its newline. A line of JSON loses the white space at its end, and the
/// first one then, with `strip_mark`, the byte order mark of UTF-8 at its beginning; a line of text loses \r and \n at
/// its end. A line that is empty then, or white space alone, is no document.
[[nodiscard]] Lines split_lines(std::string_view block, bool is_json, bool strip_mark);

}  // namespace penstock::text
