#include "bindings/register.h"

namespace penstock::bindings {
void register_shuffle(pybind11::module_&) {}
}  // namespace penstock::bindings
