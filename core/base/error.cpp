#include "core/base/error.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

namespace penstock {
namespace {

// Never destroyed: a thread may still need it while the process ends.
const std::exception_ptr& no_memory = *new std::exception_ptr(std::make_exception_ptr(std::bad_alloc()));

// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none, or with a control character.
std::size_t character_bytes(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 0 : 1;
  const std::size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Neither longer than need be, nor a surrogate, nor beyond the last character, nor a control character.
  const unsigned second = byte(1);
  const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f) ||
                     (first == 0xc2 && second < 0xa0);
  return wrong ? 0 : size;
}

}  // namespace

std::exception_ptr present_error() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return no_memory;
  } catch (...) {
    return std::current_exception();
  }
}

void raise_system(int error_number, const std::string& what, const std::string& path) {
  const ErrorKind kind = error_number == ENOENT ? ErrorKind::NotFound : ErrorKind::IoError;
  // generic_category().message is strerror without its shared static buffer.
  throw Error(kind, fmt::format("{}: {}: {}", path, what, std::generic_category().message(error_number)), error_number,
              path);
}

std::string with_commas(unsigned long long value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kMaxCharacters = 80;
  std::string shown;
  std::string_view left = text;
  for (std::size_t i = 0; i < kMaxCharacters && !left.empty(); ++i) {
    const std::size_t bytes = character_bytes(left);
    if (bytes == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(left[0]));
    } else {
      shown.append(left.substr(0, bytes));
    }
    left.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return left.empty() ? shown : fmt::format("{}… ({} bytes)", shown, with_commas(text.size()));
}

}  // namespace penstock
