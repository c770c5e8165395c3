// Conditions on documents' columns: what they choose, looked at in steps so that Ctrl-C works, and views of it.
#include "bindings/gil.h"
#include "bindings/register.h"
#include "core/rows/chosen.h"
#include "core/rows/sub_view.h"
#include "layout/where/choosing.h"
#include "layout/where/choosing_windows.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using layout::Choosing;
using layout::ChoosingWindows;
using Opened = std::shared_ptr<layout::Dataset>;
using View = std::shared_ptr<Source>;
using Choice = std::shared_ptr<Chosen>;
using Words = py::array_t<std::uint64_t, py::array::c_style>;

StoreChoice one_by_one(const std::shared_ptr<LocalStore>& local) {
  return read_local_through(local, local->reading_once(1));
}

Choice chosen_of(const Words& words, std::uint64_t size) {
  const std::uint64_t* const first = words.data();
  const auto count = static_cast<std::size_t>(words.size());
  const Unlocked released;
  return std::make_shared<Chosen>(std::vector<std::uint64_t>(first, first + count), size);
}

Words words_of(const Chosen& chosen) {
  Words out(static_cast<py::ssize_t>(chosen.words().size()));
  std::uint64_t* const to = out.mutable_data();
  const Unlocked released;
  std::copy(chosen.words().begin(), chosen.words().end(), to);
  return out;
}

py::array_t<std::int64_t> numbers_of(const Chosen& chosen) {
  py::array_t<std::int64_t> out(static_cast<py::ssize_t>(chosen.count()));
  std::int64_t* to = out.mutable_data();
  const Unlocked released;
  std::int64_t first = 0;
  for (std::uint64_t word : chosen.words()) {
    for (; word != 0; word &= word - 1) *to++ = first + __builtin_ctzll(word);
    first += 64;
  }
  return out;
}

void register_chosen(py::module_& module) {
  py::class_<Chosen, Choice>(module, "Chosen", "Some of so many observations, a bit each; see core/rows/chosen.h.")
      .def(py::init(&chosen_of), py::arg("words"), py::arg("size"))
      .def_property_readonly("size", &Chosen::size)
      .def_property_readonly("count", &Chosen::count)
      .def_property_readonly("numbers", &numbers_of, "int64 [count]: of those that are chosen.")
      .def("digest", &Chosen::digest, py::call_guard<Unlocked>())
      .def(py::pickle(
          [](const Chosen& chosen) { return py::make_tuple(words_of(chosen), chosen.size()); },
          [](const py::tuple& state) { return chosen_of(state[0].cast<Words>(), state[1].cast<std::uint64_t>()); }));
  module.def(
      "chosen_of_part",
      [](const View& part, const Choice& whole) { return std::make_shared<Chosen>(chosen_of_part(*part, *whole)); },
      py::call_guard<Unlocked>(), py::arg("part"), py::arg("whole"),
      "Those of a part of a view that are chosen of the whole view.");
  module.def(
      "make_where",
      [](const View& source, const Choice& chosen, const std::string& said) {
        return std::const_pointer_cast<Source>(
            std::shared_ptr<const Source>(std::make_shared<const SubView>(source, chosen, said)));
      },
      py::arg("source"), py::arg("chosen"), py::arg("said"),
      "The observations of a view that are chosen; `said` is what the view says of the choice.");
}

}  // namespace

void register_where(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  register_chosen(module);
  py::class_<Choosing>(module, "Choosing", "Looks which documents a condition on their columns chooses.")
      .def(py::init([local](const Opened& dataset, const std::string& condition) {
             const Unlocked released;
             return std::make_unique<Choosing>(dataset, condition, one_by_one(local));
           }),
           py::arg("dataset"), py::arg("condition"))
      .def_property_readonly("documents", &Choosing::documents)
      .def_property_readonly("condition", &Choosing::condition, "One text for all ways to write it.")
      .def_property_readonly("texts", &Choosing::texts, "(column, text) that a category is compared with by =, <>, in.")
      .def("look", &Choosing::look, py::call_guard<Unlocked>(), py::arg("first"), py::arg("count"),
           "Looks at some documents, multiples of 64; any thread.")
      .def(
          "chosen", [](Choosing& choosing) { return std::make_shared<Chosen>(choosing.chosen()); },
          py::call_guard<Unlocked>(), "Once, after all were looked at.");
  py::class_<ChoosingWindows>(module, "ChoosingWindows", "Looks which windows lie in chosen documents.")
      .def(py::init(
               [local](const Opened& dataset, const Choice& documents, std::uint64_t window, std::uint64_t lookahead) {
                 const Unlocked released;
                 return std::make_unique<ChoosingWindows>(dataset, documents, window, lookahead, one_by_one(local));
               }),
           py::arg("dataset"), py::arg("documents"), py::arg("window"), py::arg("lookahead"))
      .def("step", &ChoosingWindows::step, py::call_guard<Unlocked>(), py::arg("documents"),
           "Looks at some more; False: all were looked at.")
      .def(
          "chosen", [](ChoosingWindows& windows) { return std::make_shared<Chosen>(windows.chosen()); },
          py::call_guard<Unlocked>(), "Once, after the last step.");
  module.def(
      "choice_json",
      [](const std::string& condition, const Choice& chosen) { return layout::choice_json(condition, *chosen); },
      py::call_guard<Unlocked>(), py::arg("condition"), py::arg("chosen"), "What views say of a choice.");
}

}  // namespace penstock::bindings
