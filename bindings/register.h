// One function a concept: each adds its classes and functions to the module `penstock._native`.
#pragma once

#include "core/job/job.h"

#include <pybind11/pybind11.h>

#include <string>

namespace penstock::bindings {

void register_errors();
void register_shuffle(pybind11::module_& module);
void register_dataset(pybind11::module_& module);
void register_job(pybind11::module_& module);
void register_batch(pybind11::module_& module);
void register_loader(pybind11::module_& module);
void register_writer(pybind11::module_& module);

OnMismatch parse_on_mismatch(const std::string& text);
/// (epoch, position, step, message).
pybind11::tuple resume_tuple(const Job& job, const Resume& resume);

}  // namespace penstock::bindings
