#include "core/io/http/address.h"

#include "core/base/error.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace penstock {
namespace {

constexpr std::string_view kSeparator = "://";

// RFC 3986, 3.3: unreserved, sub-delims, ":", "@", and "/" between segments.
bool is_of_a_path(unsigned char c) {
  return std::isalnum(c) != 0 || std::string_view("-._~/!$&'()*+,;=:@").find(static_cast<char>(c)) != std::string::npos;
}

bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

}  // namespace

std::string shown_address(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t separator = url.find(kSeparator);
  if (separator == std::string_view::npos) return std::string(url);
  const std::size_t host = separator + kSeparator.size();
  const std::size_t path = std::min(url.find('/', host), url.size());
  const std::size_t at = url.substr(0, path).rfind('@');
  if (at == std::string_view::npos || at < host) return std::string(url);
  return std::string(url.substr(0, host)).append(url.substr(at + 1));
}

Address parse_address(std::string_view url) {
  Address address;
  address.shown = shown_address(url);
  while (address.shown.ends_with('/') && !address.shown.ends_with("//")) address.shown.pop_back();
  const auto is_odd = [](unsigned char c) { return c <= 0x20 || c == 0x7f || c == '"' || c == '<' || c == '>'; };
  if (std::any_of(url.begin(), url.end(), is_odd)) {
    raise(ErrorKind::InvalidArgument,
          "{}: an address has no spaces, quotes or control characters: write %20 for a space", excerpt(address.shown));
  }
  const std::size_t host = url.find(kSeparator) + kSeparator.size();
  const std::size_t path = std::min(url.find_first_of("/?#", host), url.size());
  const std::string_view authority = url.substr(host, path - host);
  const std::size_t at = authority.rfind('@');
  if (at != std::string_view::npos) address.userinfo = authority.substr(0, at);
  if (authority.size() <= address.userinfo.size() + (at != std::string_view::npos ? 1 : 0)) {
    raise(ErrorKind::InvalidArgument, "{}: an address without a host: https://HOST/PATH is one", address.shown);
  }
  const std::size_t query = url.find('?');
  const std::size_t fragment = url.find('#');
  if (fragment != std::string_view::npos) {
    raise(ErrorKind::InvalidArgument, "{}: an address with a fragment (#…), which no server sees: write %23 for a #",
          address.shown);
  }
  if (query != std::string_view::npos) address.query = url.substr(query + 1);
  return address;
}

std::string_view origin_of(std::string_view url) {
  const std::size_t separator = url.find(kSeparator);
  if (separator == std::string_view::npos) return {};
  return url.substr(0, url.find_first_of("/?#", separator + kSeparator.size()));
}

std::string encoded_path(std::string_view path) {
  std::string encoded;
  encoded.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    const bool is_encoded = c == '%' && i + 2 < path.size() && is_hex(path[i + 1]) && is_hex(path[i + 2]);
    if (is_encoded || is_of_a_path(static_cast<unsigned char>(c))) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace penstock
