// Target: what is done with any bytes, as one of penstock's inputs.
//
// A target throws nothing and breaks no require(): what it cannot read is refused by penstock::Error, in short words.
// One library of targets serves libFuzzer (libfuzzer.cpp) and the tests (corpus_test.cpp). One thread.
#pragma once

#include "core/base/error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::fuzz {

using Input = std::span<const std::byte>;

struct Target {
  const char* name;
  bool (*run)(Input input);  // true: something of it was accepted
  bool has_json;             // the input, or all before its first zero, is JSON
};

std::span<const Target> targets() noexcept;
/// Null: there is none of this name.
const Target* find_target(std::string_view name) noexcept;

/// Ends the process where it does not hold.
void require(bool holds, const char* what);
/// Counts a refusal, whose words are few, whatever the file says.
void check_message(const Error& error);
/// Those so far.
std::uint64_t refusals() noexcept;

/// True: the call threw nothing; false: penstock::Error.
template <typename Call>
bool accepts(const Call& call) {
  try {
    call();
    return true;
  } catch (const Error& error) {
    check_message(error);
    return false;
  }
}

/// The input's first byte as a choice among options, and the rest; 0 where it is empty.
std::size_t take_choice(Input& input, std::size_t options) noexcept;
inline std::string_view view_of(Input input) noexcept {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}
inline std::string text_of(Input input) {
  return std::string(view_of(input));
}
/// All before the first zero, and all behind it.
std::pair<std::string, Input> split_at_zero(Input input);

bool cache_pages(Input input);
bool columns(Input input);
bool condition(Input input);
bool directory(Input input);
bool ds_index(Input input);
bool http_reply(Input input);
bool http_server(Input input);
bool index(Input input);
bool json_lines(Input input);
bool litdata(Input input);
bool llm_c(Input input);
bool manifest(Input input);
bool mds(Input input);
bool megatron(Input input);
bool npy(Input input);
bool olmo_gzip(Input input);
bool pack_table(Input input);
bool state(Input input);

}  // namespace penstock::fuzz
