// Processes that end with the one that started them.
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::bindings {

void register_processes(pybind11::module_& module);

}  // namespace penstock::bindings
