// The one table from ErrorKind to Python exceptions. All of them are penstock.Error too.
#include "bindings/function_failed.h"
#include "bindings/register.h"
#include "core/base/error.h"

#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

// Set once at import, from penstock/_base/errors.py; they live as long as the interpreter.
struct Exceptions {
  PyObject* base = nullptr;
  PyObject* invalid_argument = nullptr;
  PyObject* not_found = nullptr;
  PyObject* corruption = nullptr;
  PyObject* io = nullptr;
  PyObject* state_mismatch = nullptr;
};
Exceptions exceptions;

PyObject* type_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument: return exceptions.invalid_argument;
    case ErrorKind::NotFound: return exceptions.not_found;
    case ErrorKind::Corruption: return exceptions.corruption;
    case ErrorKind::IoError: return exceptions.io;
    case ErrorKind::StateMismatch: return exceptions.state_mismatch;
  }
  return exceptions.base;
}

// A message may have the name of a file, which is any bytes.
PyObject* message_of(const Error& error) {
  const std::string_view text = error.what();
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
}

void set_python_error(const Error& error) {
  PyObject* type = type_of(error.kind());
  const py::object message = py::reinterpret_steal<py::object>(message_of(error));
  if (!message) return;
  const bool is_os_error = error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::IoError;
  if (!is_os_error || error.error_number() == 0) {
    PyErr_SetObject(type, message.ptr());
    return;
  }
  const py::object path = py::reinterpret_steal<py::object>(PyUnicode_DecodeFSDefault(error.path().c_str()));
  if (!path) return;
  // OSError(errno, message, filename): errno and filename are what callers look at; str() shows our message.
  PyErr_SetObject(type, py::make_tuple(error.error_number(), message, path).ptr());
}

// Calls of std::filesystem, such as for the current folder, fail like every other call.
Error of_system(const std::filesystem::filesystem_error& error) {
  const std::string path = error.path1().string();
  return {ErrorKind::IoError, fmt::format("{}: {}", path.empty() ? "." : path, error.code().message()),
          error.code().value(), path};
}

// The exception that was set is raised from another one, which has its own traceback.
void set_cause(const py::object& cause) {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != nullptr) PyException_SetCause(value, py::object(cause).release().ptr());
  PyErr_Restore(type, value, traceback);
}

}  // namespace

void register_errors() {
  const py::module_ errors = py::module_::import("penstock._base.errors");
  const auto type = [&](const char* name) { return py::object(errors.attr(name)).release().ptr(); };
  exceptions.base = type("Error");
  exceptions.invalid_argument = type("InvalidArgumentError");
  exceptions.not_found = type("NotFoundError");
  exceptions.io = type("IoError");
  exceptions.corruption = type("CorruptionError");
  exceptions.state_mismatch = type("StateMismatchError");

  // NOLINTNEXTLINE(performance-unnecessary-value-param): the type of pybind11's translators
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const FunctionFailed& error) {
      set_python_error(error);
      set_cause(error.raised());
    } catch (const Error& error) {
      set_python_error(error);
    } catch (const std::filesystem::filesystem_error& error) {
      set_python_error(of_system(error));
    }
  });
}

}  // namespace penstock::bindings
