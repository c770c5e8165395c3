// Permutation and the orders for Python. Arrays are uint64; batches run without the GIL.
#include "bindings/gil.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/job/order.h"
#include "shuffle/blocks.h"
#include "shuffle/permutation.h"
#include "shuffle/sequential.h"
#include "shuffle/uniform.h"

#include <fmt/format.h>
#include <pybind11/numpy.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using shuffle::Permutation;
using Indices = py::array_t<std::uint64_t, py::array::c_style>;

/// A Python integer (or what has __index__) in [0, 2^64); `name` is the argument that an error speaks of.
std::uint64_t to_u64(const py::handle& value, const char* name) {
  const auto integer = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!integer) throw py::error_already_set();
  const std::uint64_t result = PyLong_AsUnsignedLongLong(integer.ptr());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    raise(ErrorKind::InvalidArgument, "{} {}: wanted 0 to 2^64 - 1", name, py::str(integer).cast<std::string>());
  }
  return result;
}

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

/// What stands at first, first + stride, …: arrays of index u64, source u32 and epoch u32, each [count].
py::tuple pick(const Order& order, const py::object& first, const py::object& stride, std::size_t count) {
  const std::uint64_t begin = to_u64(first, "first");
  const std::uint64_t step = to_u64(stride, "stride");
  std::uint64_t last = 0;
  if (count > 0 &&
      (__builtin_mul_overflow(step, std::uint64_t{count} - 1, &last) || __builtin_add_overflow(begin, last, &last))) {
    raise(ErrorKind::InvalidArgument, "{} positions from {} by {}: wanted all below 2^64", count, begin, step);
  }
  py::array_t<std::uint64_t> index(static_cast<py::ssize_t>(count));
  py::array_t<std::uint32_t> source(static_cast<py::ssize_t>(count));
  py::array_t<std::uint32_t> epoch(static_cast<py::ssize_t>(count));
  auto* indices = index.mutable_data();
  auto* sources = source.mutable_data();
  auto* epochs = epoch.mutable_data();
  {
    const Unlocked released;
    std::vector<Pick> picks(count);
    order.pick(begin, step, picks);
    for (std::size_t i = 0; i < count; ++i) {
      indices[i] = picks[i].index;
      sources[i] = picks[i].source;
      epochs[i] = picks[i].epoch;
    }
  }
  return py::make_tuple(index, source, epoch);
}

void register_permutation(py::module_& module) {
  py::class_<Permutation>(module, "Permutation", R"(The bijection of [0, n) that (seed, epoch) chooses.

Constant time and memory for any n from 1 to 2^52; the same on every machine. Immutable, picklable, safe to share
between threads; calls on arrays run without the GIL.

Args:
    n: Number of elements, 1 to 2**52.
    seed: 0 to 2**64 - 1.
    epoch: 0 to 2**64 - 1; each gives an order of its own, and never another seed's.

Raises:
    ValueError: For a number outside these ranges.

Example:
    >>> import numpy, penstock
    >>> p = penstock.Permutation(1000, seed=7)
    >>> images = p(numpy.arange(1000, dtype=numpy.uint64))
    >>> bool((numpy.sort(images) == numpy.arange(1000)).all())
    True
    >>> int(p.inverse(images)[3]), p[3] == int(images[3]), len(p)
    (3, True, 1000)
)")
      .def(py::init([](const py::object& n, const py::object& seed, const py::object& epoch) {
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
)")
      .def("__getitem__", &item, py::arg("index"), "Image of one index, negative ones from the end; IndexError beyond.")
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

void register_orders(py::module_& module) {
  py::class_<Order, std::shared_ptr<Order>>(module, "Order", "A pure function from positions to observations.")
      .def("pick", &pick, py::arg("first"), py::arg("stride"), py::arg("count"),
           "What stands at first, first + stride, …: (index uint64, source uint32, epoch uint32) arrays of [count].")
      .def(
          "identity", [](const Order& order, const py::object& p) { return order.identity(to_u64(p, "position")); },
          py::arg("position"), "Canonical JSON of all that decides the positions before `position`.")
      .def(
          "end", [](const Order& order, const py::object& p) { return order.end(to_u64(p, "position")); },
          py::arg("position"), "First position after `position` that no batch may cross; 2**64 - 1: none.")
      .def(
          "fetch_end", [](const Order& order, const py::object& p) { return order.fetch_end(to_u64(p, "position")); },
          py::arg("position"), "First position after `position` where no fetch that was met goes on.")
      .def_property_readonly("epoch_size", &Order::epoch_size, "Observations in one epoch.");
  py::class_<shuffle::Uniform, Order, std::shared_ptr<shuffle::Uniform>>(module, "UniformOrder")
      .def(py::init([](const py::object& n, const py::object& seed) {
             return std::make_shared<shuffle::Uniform>(to_u64(n, "n"), to_u64(seed, "seed"));
           }),
           py::arg("n"), py::arg("seed"));
  py::class_<shuffle::Sequential, Order, std::shared_ptr<shuffle::Sequential>>(module, "SequentialOrder")
      .def(py::init([](const py::object& n) { return std::make_shared<shuffle::Sequential>(to_u64(n, "n")); }),
           py::arg("n"));
  py::class_<shuffle::Blocks, Order, std::shared_ptr<shuffle::Blocks>>(module, "BlocksOrder")
      .def(py::init([](const py::object& n, const py::object& seed, const py::object& block, const py::object& fetch,
                       const py::object& lanes) {
             const shuffle::BlocksShape shape{to_u64(block, "block"), to_u64(fetch, "fetch"), to_u64(lanes, "lanes")};
             return std::make_shared<shuffle::Blocks>(to_u64(n, "n"), to_u64(seed, "seed"), shape);
           }),
           py::arg("n"), py::arg("seed"), py::arg("block"), py::arg("fetch"), py::arg("lanes") = 1);
}

}  // namespace

void register_shuffle(py::module_& module) {
  register_permutation(module);
  register_orders(module);
}

}  // namespace penstock::bindings
