// One function a concept: each adds its classes and functions to the module `penstock._native`.
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::bindings {

void register_errors();
void register_shuffle(pybind11::module_& module);
void register_dataset(pybind11::module_& module);
void register_batch(pybind11::module_& module);
void register_loader(pybind11::module_& module);
void register_writer(pybind11::module_& module);

}  // namespace penstock::bindings
