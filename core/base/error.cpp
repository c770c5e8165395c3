#include "core/base/error.h"

#include <cerrno>
#include <new>
#include <system_error>

namespace penstock {
namespace {
const std::exception_ptr kNoMemory = std::make_exception_ptr(std::bad_alloc());
}

std::exception_ptr present_error() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
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

}  // namespace penstock
