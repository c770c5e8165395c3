#include "bindings/register.h"

namespace penstock::bindings {
void register_dataset(pybind11::module_&) {}
}  // namespace penstock::bindings
