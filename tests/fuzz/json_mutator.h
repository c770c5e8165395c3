// Mutations of a text's JSON values that leave it JSON, mostly. Pure.
#pragma once

#include <string>
#include <string_view>

namespace penstock::fuzz {

/// One or a few values, members or elements of the text, as far as it looks like JSON, are replaced, copied or taken
/// out. All behind the first zero stays.
std::string mutate_json(std::string_view text, unsigned seed);

}  // namespace penstock::fuzz
