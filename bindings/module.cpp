#include "bindings/gil.h"
#include "bindings/register.h"

PYBIND11_MODULE(_native, module) {
  module.doc() = "The native half of penstock; use the names that the package `penstock` exports.";
  const auto local = std::make_shared<penstock::LocalStore>();
  penstock::bindings::register_errors();
  penstock::bindings::register_permutation(module);
  penstock::bindings::register_orders(module);
  penstock::bindings::register_custom_orders(module);
  penstock::bindings::register_mixture(module);
  penstock::bindings::register_stores(module);
  penstock::bindings::register_python_store(module);
  penstock::bindings::register_dataset(module, local);
  penstock::bindings::register_cache(module, local);
  penstock::bindings::register_job(module);
  penstock::bindings::register_cells(module);
  penstock::bindings::register_columns(module);
  penstock::bindings::register_where(module, local);
  penstock::bindings::register_packing(module, local);
  penstock::bindings::register_loader(module, local);
  penstock::bindings::register_writer(module);
  penstock::bindings::register_shuffle(module);
  penstock::bindings::register_text(module);
  module.def("begin_exit", &penstock::bindings::begin_exit, "The interpreter ends: other threads stay in native code.");
}
