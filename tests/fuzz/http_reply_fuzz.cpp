// Any bytes as the header of a reply, line by line, and behind a zero as the body of one that refuses, or as an
// address. A reply is good only where it says that it holds what was asked for.
#include "core/io/http/address.h"
#include "core/io/http/reply.h"
#include "core/io/http/request_headers.h"
#include "tests/fuzz/targets.h"

#include <algorithm>

namespace penstock::fuzz {
namespace {

constexpr std::size_t kMostReason = 2000;

bool is_what_was_wanted(const Reply& reply, const Wanted& wanted) {
  if (reply.status != 206 || !reply.range) return false;
  const ContentRange& range = *reply.range;
  const bool is_short = wanted.may_be_short && range.end < wanted.end && range.total == range.end;
  return range.begin == wanted.begin && (range.end == wanted.end || is_short) && range.begin < range.end &&
         (!reply.length || *reply.length == range.end - range.begin) &&
         (!range.total || wanted.file_bytes == 0 || *range.total == wanted.file_bytes) &&
         (reply.encoding.empty() || reply.encoding == "identity") &&
         (wanted.etag.empty() || reply.etag.empty() || reply.etag == wanted.etag);
}

bool judge_all(const Reply& reply) {
  constexpr Wanted kWanted[] = {{0, 100, 1234, "\"a\"", false}, {0, 100, 0, "", true}, {4096, 8192, 0, "", false}};
  bool some = false;
  for (const Wanted& wanted : kWanted) {
    const Judgement judgement = judge(reply, wanted);
    require(judgement.reason.size() <= kMostReason, "a reason of more than 2,000 characters");
    require((judgement.worth == Worth::Good) == judgement.reason.empty(), "a reason for what is good, or none");
    if (judgement.worth != Worth::Good) continue;
    require(is_what_was_wanted(reply, wanted), "a reply that is not what was wanted is good");
    some = true;
  }
  return some;
}

void check_address(const std::string& url) {
  const std::string shown = shown_address(url);
  require(shown.find('?') == std::string::npos, "an address is shown with its query");
  accepts([&] {
    const Address address = parse_address(url);
    require(address.shown.find('?') == std::string::npos, "a query is shown");
    const std::size_t host = address.shown.find("://") + 3;
    const std::string authority = address.shown.substr(host, address.shown.find('/', host) - host);
    require(authority.find('@') == std::string::npos, "a password is shown");
  });
  const std::string path = encoded_path(url);
  require(encoded_path(path) == path, "a path is encoded twice");
  require(std::ranges::none_of(path, [](char c) { return c <= ' ' || c == '?' || c == '#'; }), "a path ends early");
}

void make_headers(std::string_view line, std::uint64_t begin) {
  RequestHeaders headers;
  headers.set_fixed({std::string(line)});
  std::size_t count = 0;
  for (const curl_slist* node = headers.range(begin, begin + 1); node != nullptr; node = node->next) ++count;
  require(count >= 3 && count <= 5, "headers are lost");
}

}  // namespace

bool http_reply(Input input) {
  const auto [header, rest] = split_at_zero(input);
  Reply reply;
  std::string_view left = header;
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find('\n'));
    reply.add(line);
    left.remove_prefix(std::min(line.size() + 1, left.size()));
  }
  const bool some = judge_all(reply);
  has_no_bytes(reply);
  const std::string_view body = view_of(rest);
  const std::string_view code = error_code(body);
  require(code.empty() || (code.data() >= body.data() && code.size() <= body.size()), "a code that is not of the body");
  origin_of(body);
  check_address(std::string("https://").append(body));
  shown_address(body);
  make_headers(body, input.size());
  return some;
}

}  // namespace penstock::fuzz
