#include "core/io/http/address.h"

#include "core/base/error.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace penstock {
namespace {

constexpr std::string_view kSeparator = "://";

// RFC 3986, 3.3: unreserved, sub-delims, ":", "@", and "/" between segments.
bool is_of_a_path(unsigned char c) {
  return std::isalnum(c) != 0 || std::string_view("-._~/!$&'()*+,;=:@").find(static_cast<char>(c)) != std::string::npos;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Whether what stands before the first of /?# is no host but the beginning of a password with one of them:
// name:pa/ss@host.
bool cuts_a_password(std::string_view url, std::size_t host) {
  const std::size_t end = std::min(url.find_first_of("/?#", host), url.size());
  const std::string_view authority = url.substr(host, end - host);
  if (authority.find('@') != std::string_view::npos || authority.ends_with(']')) return false;
  const std::size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos || url.find('@', end) == std::string_view::npos) return false;
  return authority.substr(colon + 1).find_first_not_of("0123456789") != std::string_view::npos;
}

bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2])) {
      plain += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// As it stands, decoded, and of what a key of Amazon's stands before: "AKID/20260101/us-east-1/s3/aws4_request".
std::string without_each(std::string text, std::string_view secret, std::size_t least) {
  const std::string plain = decoded(secret);
  for (const std::string_view each :
       {secret, std::string_view(plain), std::string_view(plain).substr(0, plain.find('/'))}) {
    if (each.size() >= least) text = without(std::move(text), each);
  }
  return text;
}

}  // namespace

std::string without(std::string text, std::string_view secret) {
  if (secret.empty()) return text;
  for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += std::strlen("…")) {
    text.replace(at, secret.size(), "…");
  }
  return text;
}

std::string without_secrets_of(std::string text, std::string_view address) {
  constexpr std::size_t kLeast = 8;
  constexpr std::size_t kLeastOfPasswords = 6;
  if (address.find(kSeparator) == std::string_view::npos) return text;
  const std::size_t host = address.find(kSeparator) + kSeparator.size();
  const std::string_view authority = address.substr(host, address.find_first_of("/?#", host) - host);
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    const std::string_view userinfo = authority.substr(0, at);
    const std::size_t colon = std::min(userinfo.find(':'), userinfo.size());
    text = without_each(std::move(text), userinfo.substr(std::min(colon + 1, userinfo.size())), kLeastOfPasswords);
    text = without_each(std::move(text), userinfo.substr(0, colon), kLeast);
  }
  std::string_view query = address.substr(std::min(address.find('?'), address.size()));
  while (!query.empty()) {
    query.remove_prefix(1);
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(pair.size());
    text = without_each(std::move(text), pair.substr(std::min(pair.find('=') + 1, pair.size())), kLeast);
  }
  return text;
}

std::string shown_address(std::string_view url) {
  const std::size_t scheme = url.find(kSeparator);
  if (scheme != std::string_view::npos && cuts_a_password(url, scheme + kSeparator.size())) {
    return std::string(url.substr(0, scheme + kSeparator.size())).append("…");
  }
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
  if (cuts_a_password(url, host)) {
    raise(ErrorKind::InvalidArgument, "{}: a password with /, ? or #: write %2F, %3F, %23", address.shown);
  }
  const std::size_t shown_path = std::min(address.shown.find('/', host), address.shown.size());
  std::transform(address.shown.begin(), address.shown.begin() + static_cast<std::ptrdiff_t>(shown_path),
                 address.shown.begin(), lower);
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

std::string origin_of(std::string_view url) {
  const std::size_t separator = url.find(kSeparator);
  if (separator == std::string_view::npos) return {};
  std::string origin(url.substr(0, url.find_first_of("/?#", separator + kSeparator.size())));
  std::transform(origin.begin(), origin.end(), origin.begin(), lower);
  for (const auto& [scheme, port] : {std::pair{"http://", ":80"}, std::pair{"https://", ":443"}}) {
    if (origin.starts_with(scheme) && origin.ends_with(port)) origin.resize(origin.size() - std::strlen(port));
  }
  return origin;
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
