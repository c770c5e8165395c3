#include "core/io/open_store.h"

#include "core/base/error.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace penstock {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// RFC 3986, 3.1: a letter, then letters, digits, "+", "-" and "."; here always followed by "://".
std::string scheme_of(const std::string& url) {
  const std::size_t end = url.find("://");
  if (end == std::string::npos || end == 0 || !is_letter(url[0])) return "";
  std::string scheme = url.substr(0, end);
  const auto fits = [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; };
  if (!std::all_of(scheme.begin(), scheme.end(), fits)) return "";
  for (char& c : scheme) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return scheme;
}

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// RFC 8089: file:///path or file://localhost/path, percent-encoded.
std::string path_of_file_url(const std::string& url) {
  std::string_view rest = std::string_view(url).substr(std::string_view("file://").size());
  constexpr std::string_view kHere = "localhost";
  if (rest.starts_with(kHere)) rest.remove_prefix(kHere.size());
  if (!rest.starts_with('/')) {
    raise(ErrorKind::InvalidArgument, "{}: a file URL of another host: file:///path is a path of this machine", url);
  }
  std::string path;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] != '%') {
      path += rest[i];
      continue;
    }
    const auto high = i + 2 < rest.size() ? hex_digit(rest[i + 1]) : std::nullopt;
    const auto low = high ? hex_digit(rest[i + 2]) : std::nullopt;
    if (!low || *high * 16 + *low == 0) {
      raise(ErrorKind::InvalidArgument, "{}: a % that no two hexadecimal digits of a character follow", url);
    }
    path += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return path;
}

}  // namespace

Location open_store(const std::string& url, const std::shared_ptr<ByteStore>& local) {
  const std::string scheme = scheme_of(url);
  if (scheme.empty()) return {local, url};
  if (scheme == "file") return {local, path_of_file_url(url)};
  // The address may hold a password or a signature.
  raise(ErrorKind::InvalidArgument,
        "{}://…: only paths and file:// URLs are opened here; penstock.open in Python also opens http://, https://, "
        "s3://, gs://, az:// and the schemes of fsspec: open it there",
        scheme);
}

}  // namespace penstock
