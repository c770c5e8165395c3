#include "bindings/register.h"

namespace penstock::bindings {
void register_writer(pybind11::module_&) {}
}  // namespace penstock::bindings
