// The one table from ErrorKind to Python exceptions. All of them are penstock.Error too.
#include "bindings/register.h"
#include "core/error.h"

namespace py = pybind11;

namespace penstock::bindings {
namespace {

// Set once at import. Borrowed by the translator; they live as long as the interpreter (the module holds them).
struct Exceptions {
  PyObject* base = nullptr;
  PyObject* invalid_argument = nullptr;
  PyObject* not_found = nullptr;
  PyObject* corruption = nullptr;
  PyObject* io = nullptr;
  PyObject* state_mismatch = nullptr;
};
Exceptions exceptions;

PyObject* define(py::module_& module, const char* name, const py::tuple& bases, const char* doc) {
  const std::string qualified = std::string("penstock.") + name;
  PyObject* type = PyErr_NewExceptionWithDoc(qualified.c_str(), doc, bases.ptr(), nullptr);
  if (type == nullptr) throw py::error_already_set();
  module.attr(name) = py::reinterpret_borrow<py::object>(type);
  return type;
}

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

void set_python_error(const Error& error) {
  PyObject* type = type_of(error.kind());
  const bool is_os_error = error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::IoError;
  if (!is_os_error || error.error_number() == 0) {
    PyErr_SetString(type, error.what());
    return;
  }
  // OSError(errno, message, filename): errno and filename are what callers look at; str() shows our message.
  PyObject* arguments = Py_BuildValue("(iss)", error.error_number(), error.what(), error.path().c_str());
  if (arguments == nullptr) return;
  PyErr_SetObject(type, arguments);
  Py_DECREF(arguments);
}

}  // namespace

void register_errors(py::module_& module) {
  const py::object exception = py::reinterpret_borrow<py::object>(PyExc_Exception);
  exceptions.base = define(module, "Error", py::make_tuple(exception), "Base of all errors that penstock raises.");
  const py::object base = py::reinterpret_borrow<py::object>(exceptions.base);
  const auto with = [&](PyObject* other) { return py::make_tuple(base, py::reinterpret_borrow<py::object>(other)); };
  exceptions.invalid_argument =
      define(module, "InvalidArgumentError", with(PyExc_ValueError), "An argument that cannot be.");
  exceptions.not_found = define(module, "NotFoundError", with(PyExc_FileNotFoundError), "No such file or dataset.");
  exceptions.io = define(module, "IoError", with(PyExc_OSError), "The operating system refused; errno and filename say.");
  exceptions.corruption =
      define(module, "CorruptionError", py::make_tuple(base), "Bytes on disk that are not what the manifest says.");
  exceptions.state_mismatch =
      define(module, "StateMismatchError", with(PyExc_ValueError), "A state of another job; the message names what differs.");

  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      set_python_error(error);
    }
  });
}

}  // namespace penstock::bindings
