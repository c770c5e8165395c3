// Mixtures: what stages make of sources, and the order that stands on it. Nothing here reads.
#include "bindings/gil.h"
#include "bindings/integers.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/job/order.h"
#include "shuffle/mixture.h"
#include "shuffle/mixture_plan.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using shuffle::Mixture;
using shuffle::MixturePlan;
using shuffle::MixtureStage;

/// (position or tokens, whether it is tokens)
using PlaceTuple = std::pair<std::uint64_t, bool>;
/// (place, window or 0, weights by source, length of its ramp)
using StageTuple = std::tuple<PlaceTuple, std::uint64_t, std::vector<std::uint64_t>, std::optional<PlaceTuple>>;

std::shared_ptr<MixturePlan> make_plan(std::vector<std::string> names, const std::vector<StageTuple>& stages,
                                       const std::vector<std::optional<std::uint64_t>>& caps, std::uint64_t window,
                                       std::uint64_t group, const std::optional<PlaceTuple>& end, bool are_packed,
                                       std::size_t of_each_length) {
  shuffle::MixtureSpec spec;
  spec.names = std::move(names);
  for (const auto& cap : caps) spec.caps.push_back(cap.value_or(Order::kNever));
  for (const auto& [at, stage_window, weights, ramp] : stages) {
    spec.stages.push_back({{at.first, at.second}, stage_window, weights});
    if (ramp) spec.stages.back().ramp = shuffle::MixturePlace{ramp->first, ramp->second};
  }
  spec.window = window;
  spec.group = group;
  spec.are_packed = are_packed;
  if (are_packed) spec.of_each_length = of_each_length;
  if (end) spec.end = shuffle::MixturePlace{end->first, end->second};
  const Unlocked released;
  return std::make_shared<MixturePlan>(std::move(spec));
}

/// 128 bits of Python's integers.
py::object wide_int(shuffle::Wide value) {
  return py::int_(static_cast<std::uint64_t>(value >> 64)) << py::int_(64) |
         py::int_(static_cast<std::uint64_t>(value));
}

// (begin, begin_tokens, window, [(source, weight), …], implied, ramp)
py::tuple stage_tuple(const MixtureStage& stage) {
  py::list weights;
  for (std::size_t i = 0; i < stage.sources.size(); ++i) {
    weights.append(py::make_tuple(stage.sources[i], stage.weights[i]));
  }
  return py::make_tuple(stage.begin, wide_int(stage.begin_tokens), stage.window, weights, stage.implied, stage.ramp);
}

std::shared_ptr<Mixture> make_mixture(const std::shared_ptr<MixturePlan>& plan,
                                      const std::vector<std::shared_ptr<Order>>& orders, const py::object& seed,
                                      bool is_steered) {
  return std::make_shared<Mixture>(plan, std::vector<std::shared_ptr<const Order>>(orders.begin(), orders.end()),
                                   to_u64(seed, "seed"), is_steered);
}

}  // namespace

void register_mixture(py::module_& module) {
  py::class_<MixturePlan, std::shared_ptr<MixturePlan>>(module, "MixturePlan", "What stages make of sources.")
      .def(py::init(&make_plan), py::kw_only(), py::arg("names"), py::arg("stages"), py::arg("caps"), py::arg("window"),
           py::arg("group"), py::arg("end"), py::arg("are_packed"), py::arg("of_each_length"))
      .def(
          "count",
          [](const MixturePlan& plan, std::uint64_t position) {
            std::vector<std::uint64_t> counts(plan.spec().names.size());
            plan.count(position, counts);
            return counts;
          },
          py::arg("position"), "Observations of each source before `position`.")
      .def(
          "stages",
          [](const MixturePlan& plan) {
            std::vector<MixtureStage> all;
            {
              const Unlocked released;
              all = plan.stages();
            }
            py::list stages;
            for (const MixtureStage& stage : all) stages.append(stage_tuple(stage));
            return stages;
          },
          "(begin, begin_tokens, window, [(source, weight), …], implied, ramp) of each.")
      .def("stage_at", &MixturePlan::stage_at, py::arg("position"))
      .def(
          "position_of",
          [](const MixturePlan& plan, std::uint64_t value, bool in_tokens) {
            return plan.position_of({value, in_tokens});
          },
          py::arg("value"), py::arg("in_tokens"), "The position at which the run has given at least so much.")
      .def(
          "tokens_before",
          [](const MixturePlan& plan, std::uint64_t position) {
            return py::int_(wide_int(plan.tokens_before(position)));
          },
          py::arg("position"), "Tokens that the run has given before `position`.")
      .def_property_readonly(
          "list_begins",
          [](const MixturePlan& plan) {
            std::vector<std::uint64_t> begins;
            for (const shuffle::MixtureCourse& course : plan.courses().list()) begins.push_back(course.begin);
            return begins;
          },
          "Positions at which the stages of the list begin.")
      .def_property_readonly("windows", &MixturePlan::windows, "That stages have, the view's first.")
      .def_property_readonly(
          "end",
          [](const MixturePlan& plan) -> std::optional<std::uint64_t> {
            if (plan.end() == Order::kNever) return std::nullopt;
            return plan.end();
          },
          "Where the run ends; None: nowhere.");
  py::class_<Mixture, Order, std::shared_ptr<Mixture>>(module, "MixtureOrder")
      .def(py::init(&make_mixture), py::arg("plan"), py::arg("orders"), py::arg("seed"), py::arg("steered") = false)
      .def_static("source_seed", &Mixture::source_seed, py::arg("seed"), py::arg("name"));
}

}  // namespace penstock::bindings
