// Rows that threads of Python finish: taken from the engine, looked at, given back.
#include "bindings/gil.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/columns/given_column.h"
#include "core/engine/hand_over.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

constexpr auto kTakePatience = std::chrono::milliseconds(500);

using Taken = HandOver::Rows;

// Waits without the GIL. None: there were no rows.
py::object take(HandOver& hand_over) {
  Taken rows;
  {
    const Unlocked released;
    rows = hand_over.take(kTakePatience);
  }
  if (!rows.batch) return py::none();
  return py::cast(std::move(rows));
}

// Of rows without an error nothing is left in `rows`.
void give_back(HandOver& hand_over, Taken& rows, const std::string& error, bool is_process) {
  std::exception_ptr failed;
  if (!error.empty()) {
    const ErrorKind kind = is_process ? ErrorKind::IoError : ErrorKind::InvalidArgument;
    failed = std::make_exception_ptr(Error(kind, error));
  }
  Taken given = failed ? rows : std::exchange(rows, {});
  const Unlocked released;
  hand_over.give_back(std::move(given), failed);
}

// The records of a row as they lie in the batch, with all that its columns are made of: uint8 [bytes].
py::array row_bytes(const std::shared_ptr<Batch>& batch, std::uint64_t i) {
  const std::uint64_t bytes = batch->row_length(i) * batch->row_format(i).stored_record_bytes;
  py::array_t<std::uint8_t> array(static_cast<py::ssize_t>(bytes),
                                  reinterpret_cast<const std::uint8_t*>(batch->row_records(i)), py::cast(batch));
  array.attr("flags").attr("writeable") = false;
  return array;
}

// (index, observation of the whole view, epoch, source, records)
py::tuple row_facts(const std::shared_ptr<Batch>& batch, std::uint64_t i) {
  const Pick& pick = batch->picks.at(i);
  return py::make_tuple(pick.index, batch->row_format(i).source->base_index(pick.index), pick.epoch, pick.source,
                        batch->row_length(i));
}

// Writes row i of array number `column`, which nobody else does.
void write_row(Batch& batch, std::size_t column, std::uint64_t i,
               const py::array_t<std::uint8_t, py::array::c_style>& bytes) {
  const PlacedArray& array = batch.arrays.at(column);
  const auto size = static_cast<std::uint64_t>(bytes.size());
  if (i >= batch.plan.valid || size * batch.plan.rows != array.shape.bytes) {
    raise(ErrorKind::InvalidArgument, "row {} of {} bytes of an array of {} for {} rows", i, size, array.shape.bytes,
          batch.plan.rows);
  }
  if (size > 0) std::memcpy(batch.slab.data() + array.at + i * size, bytes.data(), size);
}

}  // namespace

void register_hand_over(py::module_& module) {
  module.def(
      "make_given",
      [](const std::string& type, const std::vector<std::uint64_t>& dims) {
        return std::const_pointer_cast<ColumnMaker>(make_given(ScalarType::parse(type), dims));
      },
      py::arg("type"), py::arg("dims"), "An array [rows, dims…] that is written row by row.");
  py::class_<Taken>(module, "TakenRows", "Rows [first, last) of a batch that is not given out yet.")
      .def_property_readonly("batch", [](const Taken& rows) { return rows.batch; })
      .def_readonly("first", &Taken::first)
      .def_readonly("last", &Taken::last)
      .def_property_readonly("cancelled", [](const Taken& rows) { return rows.batch->cancelled.load(); })
      .def(
          "row_bytes", [](const Taken& rows, std::uint64_t i) { return row_bytes(rows.batch, i); }, py::arg("row"))
      .def(
          "row_facts", [](const Taken& rows, std::uint64_t i) { return row_facts(rows.batch, i); }, py::arg("row"),
          "(index, observation of the whole view, epoch, source, records)")
      .def(
          "write_row",
          [](const Taken& rows, std::size_t column, std::uint64_t i,
             const py::array_t<std::uint8_t, py::array::c_style>& bytes) { write_row(*rows.batch, column, i, bytes); },
          py::arg("column"), py::arg("row"), py::arg("bytes"));
  py::class_<HandOver, std::shared_ptr<HandOver>>(module, "HandOver",
                                                  "Batches that wait for what threads of Python make of their rows.")
      .def("take", &take, "TakenRows; None where there were none for a while.")
      .def("give_back", &give_back, py::arg("rows"), py::arg("error"), py::arg("is_process"),
           "They are finished, or failed with these words.")
      .def_property_readonly("closed", &HandOver::closed);
}

}  // namespace penstock::bindings
