// Reply: what a server's header says, and whether it is what was asked for.
//
// Pure: a channel feeds it header lines. What a reply is worth is decided before its body comes, so that bytes of
// another range or another version of the file never reach their destination.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock {

/// bytes begin-last/total of RFC 9110, 14.4; `end` is last + 1. total: nullopt for "*".
struct ContentRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::optional<std::uint64_t> total;
};

struct Reply {
  long status = 0;
  std::optional<ContentRange> range;
  std::optional<std::uint64_t> length;  // Content-Length
  std::string etag;                     // as it stands, quotes and W/ included
  std::string encoding;                 // of the content, in lower case
  std::string location;
  std::string region;  // x-amz-bucket-region
  std::optional<std::chrono::seconds> retry_after;
  bool has_no_ranges = false;  // Accept-Ranges: none
  bool is_whole = false;       // the header has come to its end

  /// Takes one line of the header, with or without its end. A status line begins a new reply. Lines that are not well
  /// formed are as if they had not come.
  void add(std::string_view line);
};

/// What was asked for.
struct Wanted {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t file_bytes = 0;  // of the whole file; 0: not known
  std::string_view etag;         // the one first seen; empty: none, or any will do
  bool may_be_short = false;     // the file may end before `end`
};

enum class Worth {
  Good,
  Again,      // a fault that may pass
  Elsewhere,  // a redirect
  Refused,    // 401 or 403
  Missing,    // 404 or 410
  Changed,    // another size or ETag than expected
  NoRanges,   // the whole file, as from a server that knows no ranges
  Unwanted,   // any other: asking again will not help
};

struct Judgement {
  Worth worth = Worth::Good;
  std::string reason;  // empty where it is good: a part of a sentence
};

/// Whether a file whose beginning was asked for is empty, which has no range.
bool has_no_bytes(const Reply& reply);

/// Of a file whose ETag is not the one first seen.
Judgement other_version(std::string_view before, std::string_view now);

/// Of the header of a reply to a request for a range.
Judgement judge(const Reply& reply, const Wanted& wanted);

/// The name that an object store gives the error which `body` tells of: "NoSuchBucket" (Amazon's REST API, "Error
/// Responses"). Empty where there is none. A part of `body`.
std::string_view error_code(std::string_view body) noexcept;

}  // namespace penstock
