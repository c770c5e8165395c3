#include "bindings/tell_python.h"

#include <cstdint>

namespace penstock::bindings {

namespace py = pybind11;

writer::TellProgress tell_python(Unlocked& released, const py::object& progress) {
  return [&released, &progress](std::uint64_t done, std::uint64_t total) {
    const Unlocked::Locked locked(released);
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!progress.is_none()) {
      from_python([&] { return PyObject_CallFunction(progress.ptr(), "KK", done, total); });
    }
  };
}

}  // namespace penstock::bindings
