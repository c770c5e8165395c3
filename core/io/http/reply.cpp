#include "core/io/http/reply.h"

#include "core/base/error.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <utility>

namespace penstock {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// Of a name of a header with one in lower case.
bool is_name(std::string_view text, std::string_view name) {
  const auto is_same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  };
  return text.size() == name.size() && std::equal(text.begin(), text.end(), name.begin(), is_same);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// "bytes 0-99/1234", "bytes 0-99/*", "bytes */1234".
std::optional<ContentRange> content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!is_name(text.substr(0, kUnit.size()), kUnit)) return std::nullopt;
  text = trimmed(text.substr(kUnit.size()));
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ContentRange range;
  const std::string_view total = text.substr(slash + 1);
  if (total != "*" && !(range.total = number(total))) return std::nullopt;
  const std::string_view places = text.substr(0, slash);
  if (places == "*") return range;
  const std::size_t dash = places.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto begin = number(places.substr(0, dash));
  const auto last = number(places.substr(dash + 1));
  if (!begin || !last || *last < *begin || *last == UINT64_MAX) return std::nullopt;
  range.begin = *begin;
  range.end = *last + 1;
  return range;
}

// Seconds, or a date (RFC 9110, 10.2.3).
std::optional<std::chrono::seconds> retry_after(std::string_view text) {
  constexpr std::uint64_t kMost = 86'400;  // a day
  if (const auto seconds = number(text)) return std::chrono::seconds(std::min(*seconds, kMost));
  std::tm date{};
  if (::strptime(std::string(text).c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date) == nullptr) return std::nullopt;
  const auto left = static_cast<long long>(::timegm(&date)) - static_cast<long long>(::time(nullptr));
  return std::chrono::seconds(std::clamp<long long>(left, 0, kMost));
}

Judgement judge_range(const Reply& reply, const Wanted& wanted) {
  if (!reply.range || reply.range->begin == reply.range->end) {  // "bytes */1234" is none
    return {Worth::Again, "a reply 206 without the range that it holds"};
  }
  const ContentRange& range = *reply.range;
  if (range.begin != wanted.begin || range.end != wanted.end) {
    // A file that ends earlier is sent up to its end: that is its size, and no fault of the server.
    const bool is_short = range.begin == wanted.begin && range.total && range.end == *range.total;
    if (!is_short || range.end > wanted.end) {
      return {Worth::Again, fmt::format("bytes {} to {} came instead", range.begin, range.end)};
    }
  }
  if (range.total && wanted.file_bytes > 0 && *range.total != wanted.file_bytes) {
    return {Worth::Changed, fmt::format("the file has {} bytes there, and {} were expected", with_commas(*range.total),
                                        with_commas(wanted.file_bytes))};
  }
  if (range.end != wanted.end && !wanted.may_be_short) {
    return {Worth::Changed, fmt::format("the file ends at byte {} there", with_commas(range.end))};
  }
  if (reply.length && *reply.length != range.end - range.begin) {
    return {Worth::Again, fmt::format("a body of {} bytes was announced", with_commas(*reply.length))};
  }
  return {};
}

// Amazon's way to say that another region's server was asked.
Judgement other_region(const Reply& reply) {
  return {Worth::Unwanted, fmt::format("the bucket is in the region {0}: give Storage(region=\"{0}\"), --region {0}",
                                       excerpt(reply.region))};
}

}  // namespace

void Reply::add(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with("HTTP/")) {
    *this = {};
    const std::size_t space = line.find(' ');
    if (space != std::string_view::npos) status = static_cast<long>(number(line.substr(space + 1, 3)).value_or(0));
    return;
  }
  if (line.empty()) is_whole = true;
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (is_name(name, "content-range")) {
    range = content_range(value);
  } else if (is_name(name, "content-length")) {
    length = number(value);
  } else if (is_name(name, "etag")) {
    etag = value;
  } else if (is_name(name, "content-encoding")) {
    encoding = lower(value);
  } else if (is_name(name, "location")) {
    location = value;
  } else if (is_name(name, "x-amz-bucket-region")) {
    region = value;
  } else if (is_name(name, "retry-after")) {
    retry_after = penstock::retry_after(value);
  } else if (is_name(name, "accept-ranges")) {
    has_no_ranges = is_name(value, "none");
  }
}

bool has_no_bytes(const Reply& reply) {
  if (reply.status == 200) return reply.length == 0 && reply.encoding.empty();
  return reply.status == 416 && (!reply.range || reply.range->total.value_or(0) == 0);  // some name no size
}

Judgement other_version(std::string_view before, std::string_view now) {
  return {Worth::Changed,
          fmt::format("the file is another one than before: its ETag was {} and is {}", excerpt(before), excerpt(now))};
}

namespace {

// Of a status of which nothing more is to be said.
Worth worth_of(long status) {
  switch (status) {
    case 401:
    case 403: return Worth::Refused;
    case 404:
    case 410: return Worth::Missing;
    case 0:  // no reply came
    case 408:
    case 429: return Worth::Again;
    default: return status >= 500 ? Worth::Again : Worth::Unwanted;
  }
}

Judgement judge_content(const Reply& reply, const Wanted& wanted) {
  if (!reply.encoding.empty() && reply.encoding != "identity") {
    return {Worth::Again, fmt::format("the content is encoded ({}), which was not asked for", excerpt(reply.encoding))};
  }
  if (!wanted.etag.empty() && !reply.etag.empty() && reply.etag != wanted.etag) {
    return other_version(wanted.etag, reply.etag);
  }
  if (reply.status == 206) return judge_range(reply, wanted);
  return {Worth::NoRanges, fmt::format("status {}, the whole file instead of a range", reply.status)};
}

Judgement range_beyond(const Reply& reply) {
  const auto total = reply.range ? reply.range->total : std::nullopt;
  return {Worth::Changed, total ? fmt::format("the file has {} bytes there", with_commas(*total))
                                : std::string("the file ends before that range")};
}

}  // namespace

Judgement judge(const Reply& reply, const Wanted& wanted) {
  const long status = reply.status;
  const auto with_status = [&](Worth worth, std::string_view what) {
    return Judgement{worth, fmt::format("status {}{}", status, what)};
  };
  switch (status) {
    case 200:
    case 206: return judge_content(reply, wanted);
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      if (!reply.region.empty()) return other_region(reply);
      return with_status(reply.location.empty() ? Worth::Unwanted : Worth::Elsewhere, ", a redirect");
    case 400: return reply.region.empty() ? with_status(Worth::Unwanted, "") : other_region(reply);
    case 412: return with_status(Worth::Changed, ": the file is another one than before");
    case 416: return range_beyond(reply);
    default: return with_status(worth_of(status), "");
  }
}

std::string_view error_code(std::string_view body) noexcept {
  constexpr std::string_view kBegin = "<Code>";
  const std::size_t at = body.find(kBegin);
  if (at == std::string_view::npos) return {};
  body.remove_prefix(at + kBegin.size());
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  const auto end = static_cast<std::size_t>(std::find_if_not(body.begin(), body.end(), is_letter) - body.begin());
  return body.substr(end).starts_with("</Code>") ? body.substr(0, end) : std::string_view();
}

}  // namespace penstock
