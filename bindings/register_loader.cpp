#include "bindings/register.h"

namespace penstock::bindings {
void register_loader(pybind11::module_&) {}
}  // namespace penstock::bindings
