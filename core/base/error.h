// Error: what every layer of penstock throws.
//
// The kind says what a caller can do about it; the message names the object, the value seen and the value wanted.
// Thread rule: a value, any thread. The Python edge maps kinds to exceptions in one table (bindings/errors.cpp).
#pragma once

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace penstock {

enum class ErrorKind { InvalidArgument, NotFound, Corruption, IoError, StateMismatch };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  /// An IoError or NotFound of the operating system: `error_number` is errno, `path` the file it was about.
  Error(ErrorKind kind, const std::string& message, int error_number, std::string path)
      : std::runtime_error(message), kind_(kind), error_number_(error_number), path_(std::move(path)) {}

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
  [[nodiscard]] int error_number() const noexcept { return error_number_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  ErrorKind kind_;
  int error_number_ = 0;
  std::string path_;
};

/// Throws Error{kind, fmt::format(format, arguments…)}.
template <typename... Arguments>
[[noreturn]] void raise(ErrorKind kind, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw Error(kind, fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Throws the Error for a failed system call: `what` and `path` go into the message with strerror(error_number).
/// ENOENT becomes NotFound, everything else IoError.
[[noreturn]] void raise_system(int error_number, const std::string& what, const std::string& path);

/// In a handler: the present exception, to be kept. That there was no memory is always the same one, made beforehand: a
/// thread that has none keeps one for each row, and C++ sets memory aside for a few hundred exceptions.
std::exception_ptr present_error() noexcept;

/// 1234567 -> "1,234,567": how counts appear in messages.
std::string with_commas(unsigned long long value);

/// Text that a file holds, as it appears in messages: its first 80 characters, and how many bytes there are if that is
/// not all. Control characters and bytes that are no UTF-8 become \xNN.
std::string excerpt(std::string_view text);

}  // namespace penstock
