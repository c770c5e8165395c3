// Addresses of HTTP: what of them may be shown, and what may not.
//
// A query may hold a signature, what stands before an @ a password: neither is in a path, a message or a state. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock {

/// An address in parts: scheme://host/path of it may be shown.
struct Address {
  std::string shown;     // without the others, and without a slash at its end
  std::string userinfo;  // name:password as it stood before the @; may be empty
  std::string query;     // what followed the ?; may be empty
};

/// Throws InvalidArgument if it has no host, or a fragment (#…), or characters that no address has: without showing
/// more of it than `shown`.
Address parse_address(std::string_view url);

/// The part scheme://host:port of an address in lower case, without the port where it is the scheme's own.
std::string origin_of(std::string_view url);

/// The address with the parts that may not be shown left out; of any text.
std::string shown_address(std::string_view url);

/// `text`, which a server may have written, without what opens an address: its name and password and the values of its
/// query, as they stand there or decoded. Those below six letters (of a query eight) are not told from words.
std::string without_secrets_of(std::string text, std::string_view address);

/// `text` with … for each `secret` in it.
std::string without(std::string text, std::string_view secret);

/// A path of a store as an address has it: what is no letter, digit or one of -._~/!$&'()*+,;=:@ becomes %XX. What is
/// already %XX stays.
std::string encoded_path(std::string_view path);

}  // namespace penstock
