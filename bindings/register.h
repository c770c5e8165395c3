// One function a concept: each adds its classes and functions to the module `penstock._native`. `local` is the
// process's only store of local files.
#pragma once

#include "core/io/local/local_store.h"
#include "core/job/job.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>

namespace penstock::bindings {

/// Reads of files of `local` go through `reader`, others through the store that the file names.
inline StoreChoice read_local_through(const std::shared_ptr<LocalStore>& local, std::shared_ptr<ByteStore> reader) {
  return [local, reader = std::move(reader)](ByteStore& files) -> ByteStore& {
    return &files == local.get() ? *reader : files;
  };
}

void register_errors();
void register_permutation(pybind11::module_& module);
void register_orders(pybind11::module_& module);
void register_custom_orders(pybind11::module_& module);
void register_mixture(pybind11::module_& module);
void register_stores(pybind11::module_& module);
void register_python_store(pybind11::module_& module);
void register_cache(pybind11::module_& module, const std::shared_ptr<LocalStore>& local);
void register_dataset(pybind11::module_& module, const std::shared_ptr<LocalStore>& local);
void register_hand_over(pybind11::module_& module);
void register_packing(pybind11::module_& module, const std::shared_ptr<LocalStore>& local);
void register_job(pybind11::module_& module);
void register_columns(pybind11::module_& module);
void register_cells(pybind11::module_& module);
void register_batch(pybind11::module_& module, const std::shared_ptr<LocalStore>& local);
void register_loader(pybind11::module_& module, const std::shared_ptr<LocalStore>& local);
void register_writer(pybind11::module_& module);
void register_where(pybind11::module_& module, const std::shared_ptr<LocalStore>& local);
void register_shuffle(pybind11::module_& module);
void register_text(pybind11::module_& module);

OnMismatch parse_on_mismatch(const std::string& text);
/// (epoch, position, step, message).
pybind11::tuple resume_tuple(const Job& job, const Resume& resume);

}  // namespace penstock::bindings
