// Orders for Python: what stands where. Tables are made of arrays without the GIL.
#include "bindings/gil.h"
#include "bindings/integers.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/job/order.h"
#include "shuffle/balanced.h"
#include "shuffle/blocks.h"
#include "shuffle/bucketed.h"
#include "shuffle/grown.h"
#include "shuffle/independent.h"
#include "shuffle/sequential.h"
#include "shuffle/uniform.h"
#include "shuffle/weighted.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

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

template <typename T>
std::span<const T> values_of(const py::array_t<T, py::array::c_style>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

std::shared_ptr<shuffle::Weighted> make_weighted(const py::array_t<double, py::array::c_style>& weights,
                                                 std::shared_ptr<Order> mixed, const py::object& seed, bool replace,
                                                 bool systematic, std::string name) {
  const std::uint64_t number = to_u64(seed, "seed");
  const std::span<const double> values = values_of(weights);
  const Unlocked released;
  return std::make_shared<shuffle::Weighted>(shuffle::WeightTable(values), std::move(mixed), number, replace,
                                             systematic ? shuffle::Draws::Systematic : shuffle::Draws::Rounded,
                                             std::move(name));
}

std::shared_ptr<shuffle::Independent> make_independent(const py::array_t<double, py::array::c_style>& weights,
                                                       const py::object& seed, const py::object& size,
                                                       const py::object& fetch, const py::object& lanes,
                                                       std::string name) {
  const std::uint64_t number = to_u64(seed, "seed");
  const std::uint64_t draws = to_u64(size, "size");
  const std::uint64_t together = to_u64(fetch, "fetch");
  const std::uint64_t lane_count = to_u64(lanes, "lanes");
  const std::span<const double> values = values_of(weights);
  const Unlocked released;
  return std::make_shared<shuffle::Independent>(shuffle::WeightTable(values), number, draws, together, lane_count,
                                                std::move(name));
}

std::shared_ptr<shuffle::Balanced> make_balanced(const py::array_t<std::int32_t, py::array::c_style>& labels,
                                                 std::uint32_t classes, const py::object& seed, const py::object& size,
                                                 const py::object& fetch, const py::object& lanes) {
  const std::uint64_t number = to_u64(seed, "seed");
  const std::uint64_t draws = to_u64(size, "size");
  const std::uint64_t together = to_u64(fetch, "fetch");
  const std::uint64_t lane_count = to_u64(lanes, "lanes");
  const std::span<const std::int32_t> values = values_of(labels);
  const Unlocked released;
  return std::make_shared<shuffle::Balanced>(shuffle::ClassMembers(values, classes), number, draws, together,
                                             lane_count);
}

std::shared_ptr<shuffle::Bucketed> make_bucketed(const py::array_t<std::uint32_t, py::array::c_style>& lengths,
                                                 const py::object& seed, const py::object& pool,
                                                 const py::object& bucket) {
  const std::uint64_t number = to_u64(seed, "seed");
  const std::uint64_t pool_size = to_u64(pool, "pool");
  const std::uint64_t bucket_size = to_u64(bucket, "bucket");
  const std::span<const std::uint32_t> values = values_of(lengths);
  const Unlocked released;
  return std::make_shared<shuffle::Bucketed>(std::vector<std::uint32_t>(values.begin(), values.end()), number,
                                             pool_size, bucket_size);
}

using GrownPart = std::tuple<std::uint64_t, std::shared_ptr<Order>, std::string>;  // (begin, order, JSON of its source)

std::shared_ptr<shuffle::Grown> make_grown(const std::vector<GrownPart>& given) {
  std::vector<shuffle::Grown::Part> parts;
  parts.reserve(given.size());
  for (const auto& [begin, order, source] : given) parts.push_back({begin, order, source});
  return std::make_shared<shuffle::Grown>(std::move(parts));
}

}  // namespace

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
           py::arg("n"))
      .def(py::init([](const py::object& n, const py::object& seed, const py::object& fetch) {
             return std::make_shared<shuffle::Sequential>(to_u64(n, "n"), to_u64(seed, "seed"), to_u64(fetch, "fetch"));
           }),
           py::arg("n"), py::arg("seed"), py::arg("fetch"));
  py::class_<shuffle::Blocks, Order, std::shared_ptr<shuffle::Blocks>>(module, "BlocksOrder")
      .def(py::init([](const py::object& n, const py::object& seed, const py::object& block, const py::object& fetch,
                       const py::object& lanes) {
             const shuffle::BlocksShape shape{to_u64(block, "block"), to_u64(fetch, "fetch"), to_u64(lanes, "lanes")};
             return std::make_shared<shuffle::Blocks>(to_u64(n, "n"), to_u64(seed, "seed"), shape);
           }),
           py::arg("n"), py::arg("seed"), py::arg("block"), py::arg("fetch"), py::arg("lanes") = 1);
  py::class_<shuffle::Weighted, Order, std::shared_ptr<shuffle::Weighted>>(module, "WeightedOrder")
      .def(py::init(&make_weighted), py::arg("weights"), py::arg("mixed"), py::arg("seed"), py::arg("replace"),
           py::arg("systematic"), py::arg("name"));
  py::class_<shuffle::Independent, Order, std::shared_ptr<shuffle::Independent>>(module, "IndependentOrder")
      .def(py::init(&make_independent), py::arg("weights"), py::arg("seed"), py::arg("size"), py::arg("fetch"),
           py::arg("lanes"), py::arg("name"));
  py::class_<shuffle::Balanced, Order, std::shared_ptr<shuffle::Balanced>>(module, "BalancedOrder")
      .def(py::init(&make_balanced), py::arg("labels"), py::arg("classes"), py::arg("seed"), py::arg("size"),
           py::arg("fetch"), py::arg("lanes"));
  py::class_<shuffle::Bucketed, Order, std::shared_ptr<shuffle::Bucketed>>(module, "BucketedOrder")
      .def(py::init(&make_bucketed), py::arg("lengths"), py::arg("seed"), py::arg("pool"), py::arg("bucket"));
  py::class_<shuffle::Grown, Order, std::shared_ptr<shuffle::Grown>>(module, "GrownOrder")
      .def(py::init(&make_grown), py::arg("parts"));
}

}  // namespace penstock::bindings
