// Permutation for Python. Arrays are uint64; batches run without the GIL.
#include "bindings/gil.h"
#include "bindings/integers.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "shuffle/permutation.h"

#include <fmt/format.h>
#include <pybind11/numpy.h>

#include <algorithm>
#include <string>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using shuffle::Permutation;
using Indices = py::array_t<std::uint64_t, py::array::c_style>;

const py::object& numpy_asarray() {
  PYBIND11_CONSTINIT static py::gil_safe_call_once_and_store<py::object> storage;
  return storage.call_once_and_store_result([] { return py::module_::import("numpy").attr("asarray"); }).get_stored();
}

/// `values` as contiguous uint64. TypeError unless they are integers; InvalidArgument for a negative one.
Indices to_indices(const py::object& values) {
  const py::object& asarray = numpy_asarray();
  const py::array array = from_python([&] { return PyObject_CallFunction(asarray.ptr(), "(O)", values.ptr()); });
  const char kind = array.dtype().kind();
  if (kind != 'u' && kind != 'i') {
    throw py::type_error(
        fmt::format("indices of dtype {}: wanted integers", py::str(array.dtype()).cast<std::string>()));
  }
  if (kind == 'i') {
    const py::array_t<std::int64_t, py::array::c_style> as_signed =
        from_python([&] { return PyObject_CallFunction(asarray.ptr(), "Oss", array.ptr(), "int64", "C"); });
    const auto* begin = as_signed.data();
    const auto* end = begin + as_signed.size();
    const auto* negative = std::find_if(begin, end, [](std::int64_t index) { return index < 0; });
    if (negative != end) raise(ErrorKind::InvalidArgument, "index {}: wanted none below 0", *negative);
  }
  return from_python([&] { return PyObject_CallFunction(asarray.ptr(), "Oss", array.ptr(), "uint64", "C"); });
}

enum class Direction { Forward, Inverse };

template <Direction direction>
Indices apply(const Permutation& permutation, const py::object& values) {
  const Indices in = to_indices(values);
  Indices out(std::vector<py::ssize_t>(in.shape(), in.shape() + in.ndim()));
  const std::span<const std::uint64_t> from(in.data(), static_cast<std::size_t>(in.size()));
  const std::span<std::uint64_t> to(out.mutable_data(), from.size());
  const Unlocked released;
  if constexpr (direction == Direction::Forward) {
    permutation(from, to);
  } else {
    permutation.inverse(from, to);
  }
  return out;
}

/// As a sequence does it: -1 is the last, IndexError beyond the ends.
std::uint64_t item(const Permutation& permutation, const py::object& index) {
  const py::ssize_t number = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  const auto size = static_cast<py::ssize_t>(permutation.size());
  if (number < -size || number >= size) {
    throw py::index_error(fmt::format("index {} of a permutation of {}", number, with_commas(permutation.size())));
  }
  return permutation(static_cast<std::uint64_t>(number < 0 ? number + size : number));
}

std::string repr(const Permutation& permutation) {
  return fmt::format("Permutation({}, seed={}, epoch={})", permutation.size(), permutation.seed(), permutation.epoch());
}

using PermutationClass = py::class_<Permutation>;

constexpr const char* kPermutationDoc = R"(The bijection of [0, n) that (seed, epoch) chooses.

Constant time and memory for any n from 1 to 2^52; the same on every machine. Immutable, picklable, safe to share
between threads; calls on arrays run without the GIL.

Args:
    n: Number of elements, 1 to 2**52.
    seed: 0 to 2**64 - 1.
    epoch: 0 to 2**64 - 1; each gives an order of its own, and never another seed's.

Raises:
    ValueError: For a number outside these ranges.

Examples:
    >>> import numpy, penstock
    >>> p = penstock.Permutation(1000, seed=7)
    >>> images = p(numpy.arange(1000, dtype=numpy.uint64))
    >>> bool((numpy.sort(images) == numpy.arange(1000)).all())
    True
    >>> int(p.inverse(images)[3]), p[3] == int(images[3]), len(p)
    (3, True, 1000)
)";

void add_calls(PermutationClass& type) {
  type.def(py::init([](const py::object& n, const py::object& seed, const py::object& epoch) {
             return Permutation(to_u64(n, "n"), to_u64(seed, "seed"), to_u64(epoch, "epoch"));
           }),
           py::arg("n"), py::arg("seed"), py::arg("epoch") = 0)
      .def("__call__", &apply<Direction::Forward>, py::arg("indices"),
           R"(Images of many indices.

Args:
    indices: Array of integers of any shape, each in [0, n).

Returns:
    New uint64 array of the same shape.

Raises:
    TypeError: If the array is not of integers.
    ValueError: If an index is outside [0, n).
)")
      .def("inverse", &apply<Direction::Inverse>, py::arg("values"),
           R"(The indices whose images are `values`: ``p.inverse(p(i)) == i``.

Args:
    values: Array of integers of any shape, each in [0, n).

Returns:
    New uint64 array of the same shape.

Raises:
    TypeError: If the array is not of integers.
    ValueError: If a value is outside [0, n).
)");
}

// What an object of Python has.
void add_object(PermutationClass& type) {
  type.def("__getitem__", &item, py::arg("index"), "Image of one index, negative ones from the end; IndexError beyond.")
      .def("__len__", &Permutation::size)
      .def("__repr__", &repr)
      .def(
          "__eq__",
          [](const Permutation& self, const Permutation& other) {
            return self.size() == other.size() && self.seed() == other.seed() && self.epoch() == other.epoch();
          },
          py::is_operator())
      .def("__hash__",
           [](const Permutation& self) { return py::hash(py::make_tuple(self.size(), self.seed(), self.epoch())); })
      .def_property_readonly("n", &Permutation::size, "Number of elements.")
      .def_property_readonly("seed", &Permutation::seed, "The seed.")
      .def_property_readonly("epoch", &Permutation::epoch, "The epoch.")
      .def_property_readonly_static(
          "algorithm", [](const py::object&) { return shuffle::kAlgorithm; }, "Number of the algorithm, for ever 1.")
      .def(py::pickle([](const Permutation& self) { return py::make_tuple(self.size(), self.seed(), self.epoch()); },
                      [](const py::tuple& state) {
                        return Permutation(to_u64(state[0], "n"), to_u64(state[1], "seed"), to_u64(state[2], "epoch"));
                      }));
}

}  // namespace

void register_permutation(py::module_& module) {
  PermutationClass type(module, "Permutation", kPermutationDoc);
  add_calls(type);
  add_object(type);
}

}  // namespace penstock::bindings
