// tell_python: progress of what runs without the GIL, told to a function of Python's.
#pragma once

#include "bindings/gil.h"
#include "writer/files/progress.h"

#include <pybind11/pybind11.h>

namespace penstock::bindings {

/// Calls `progress` (None: nothing) with the GIL, and looks for Ctrl-C, so that hours of reading can be stopped. Both
/// outlive what is returned.
writer::TellProgress tell_python(Unlocked& released, const pybind11::object& progress);

}  // namespace penstock::bindings
