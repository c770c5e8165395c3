#include "bindings/integers.h"

#include "core/base/error.h"

#include <string>

namespace py = pybind11;

namespace penstock::bindings {

std::uint64_t to_u64(const py::handle& value, const char* name) {
  const auto integer = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!integer) throw py::error_already_set();
  const std::uint64_t result = PyLong_AsUnsignedLongLong(integer.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    raise(ErrorKind::InvalidArgument, "{} {}: wanted 0 to 2^64 - 1", name, py::str(integer).cast<std::string>());
  }
  return result;
}

}  // namespace penstock::bindings
