// Forms of cells: what bindings/penstock/_data/cell_forms.py asks for, as makers of columns.
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/columns/cells/forms.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using cells::CellSpec;
using cells::SentenceSpec;
// pybind11 holds no shared_ptr to const; nothing that is bound here changes one of these.
using Maker = std::shared_ptr<ColumnMaker>;
using Cells = std::shared_ptr<CellSpec>;
using Sentences = std::shared_ptr<SentenceSpec>;

template <typename T>
using Values = py::array_t<T, py::array::c_style>;

template <typename T>
std::vector<T> copied(const Values<T>& array) {
  return {array.data(), array.data() + array.size()};
}

Maker made(const std::shared_ptr<const ColumnMaker>& maker) {
  return std::const_pointer_cast<ColumnMaker>(maker);
}

cells::Choice parse_choice(const std::string& text) {
  if (text == "top") return cells::Choice::Top;
  if (text == "first") return cells::Choice::First;
  if (text == "random") return cells::Choice::Random;
  raise(ErrorKind::InvalidArgument, "choose=\"{}\": must be \"top\", \"first\" or \"random\"", text);
}

}  // namespace

void register_cells(py::module_& module) {
  py::class_<ColumnMaker, Maker>(module, "ColumnMaker", "Makes a column of each batch that core does not know.");
  py::class_<CellSpec, Cells>(module, "CellSpec", "What all forms know of cells; see core/columns/cells/cell.h.")
      .def(py::init([](std::string value, std::optional<std::uint64_t> known, std::optional<std::uint64_t> width,
                       const Values<std::int32_t>& places, std::optional<double> normalize, bool log1p) {
             return CellSpec{"gene", std::move(value), known, width, copied(places), normalize, log1p};
           }),
           py::kw_only(), py::arg("value"), py::arg("known"), py::arg("width"), py::arg("places"), py::arg("normalize"),
           py::arg("log1p"));
  py::class_<SentenceSpec, Sentences>(module, "SentenceSpec", "What sentences share; see core/columns/cells/forms.h.")
      .def(py::init([](std::uint64_t length, const Values<std::int64_t>& tokens, std::optional<std::int64_t> cls,
                       std::optional<std::int64_t> eos, std::int64_t pad) {
             return SentenceSpec{length, copied(tokens), cls, eos, pad};
           }),
           py::kw_only(), py::arg("length"), py::arg("tokens"), py::arg("cls"), py::arg("eos"), py::arg("pad"));
  module.def(
      "make_csr",
      [](const Cells& cells, bool wide_index, bool double_value) {
        return made(cells::make_csr(cells, {wide_index, double_value}));
      },
      py::arg("cells"), py::arg("wide_index"), py::arg("double_value"), "Arrays: genes, values, offsets.");
  module.def(
      "make_dense", [](const Cells& cells, bool double_value) { return made(cells::make_dense(cells, double_value)); },
      py::arg("cells"), py::arg("double_value"), "Array: x.");
  module.def(
      "make_ranked",
      [](const Cells& cells, const Sentences& sentences, const Values<double>& medians) {
        return made(cells::make_ranked(cells, sentences, copied(medians)));
      },
      py::arg("cells"), py::arg("sentences"), py::arg("medians"), "Arrays: tokens, mask.");
  module.def(
      "make_binned",
      [](const Cells& cells, const Sentences& sentences, const Values<double>& quantiles, const std::string& choose,
         std::int64_t pad_value, std::uint64_t seed) {
        return made(cells::make_binned(cells, sentences, {copied(quantiles), parse_choice(choose), pad_value, seed}));
      },
      py::arg("cells"), py::arg("sentences"), py::arg("quantiles"), py::arg("choose"), py::arg("pad_value"),
      py::arg("seed"), "Arrays: tokens, bins, mask.");
}

}  // namespace penstock::bindings
