// Sealed JSON: a text whose last member is the CRC32C of itself.
//
// The text ends with `  "crc32c": "xxxxxxxx"\n}\n`; the digits are the CRC32C of the whole text with zeros in their
// place. So one flipped bit, a cut or an added byte anywhere is found before anything is parsed. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace penstock::layout {

/// `body` is an object's text up to and including the comma after its last member: adds the seal.
std::string seal_json(std::string body);

/// Throws Corruption naming `what` unless `text` is sealed and the seal is right.
void check_seal(std::string_view text, const std::string& what);

}  // namespace penstock::layout
