// A shuffle for Python: whole, or in tasks that many processes do.
#include "bindings/gil.h"
#include "bindings/register.h"
#include "bindings/tell_python.h"
#include "shuffle/permutation.h"
#include "writer/folder/dataset_folder.h"
#include "writer/shuffle/shuffle.h"
#include "writer/shuffle/shuffle_tasks.h"

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

// (where they go, shard.json of those that are finished there, whether a dataset of these is published, what is called
// with the number of each shard that is whole)
using ElsewhereTuple = std::tuple<std::string, std::vector<py::bytes>, bool, py::function>;

writer::MakeDestinations destinations_by_seed(std::uint64_t seed) {
  return [seed](std::uint64_t size) -> writer::Destinations {
    return [permutation = shuffle::Permutation(size, seed)](std::span<const std::uint64_t> in,
                                                            std::span<std::uint64_t> out_places) {
      permutation.inverse(in, out_places);
    };
  };
}

writer::ShuffleOptions shuffle_options(std::uint64_t seed, std::optional<std::uint64_t> window, std::uint64_t memory,
                                       std::uint64_t shard_bytes) {
  writer::ShuffleOptions options;
  options.window = window;
  options.order_json = fmt::format(R"({{"algorithm":{},"permutation":{}}})", shuffle::kAlgorithm, seed);
  options.memory_bytes = memory;
  options.shard_bytes = shard_bytes;
  return options;
}

std::string shuffle_by_seed(const std::string& path, const std::string& out, std::uint64_t seed,
                            std::optional<std::uint64_t> window, std::uint64_t memory, std::uint64_t shard_bytes,
                            const std::string& scratch, bool resume, bool overwrite, const py::object& progress,
                            const std::optional<ElsewhereTuple>& elsewhere) {
  writer::ShuffleOptions options = shuffle_options(seed, window, memory, shard_bytes);
  options.scratch = scratch;
  options.resume = resume;
  options.overwrite = overwrite;
  if (elsewhere) {
    const auto& [where, finished, is_published, moving] = *elsewhere;
    options.elsewhere = {where, {finished.begin(), finished.end()}, is_published, {}};
  }
  Unlocked released;
  if (elsewhere) {
    options.elsewhere->moving = [&released, &moving = std::get<3>(*elsewhere)](std::uint64_t number) {
      const Unlocked::Locked locked(released);
      from_python([&] { return PyObject_CallFunction(moving.ptr(), "K", number); });
    };
  }
  return writer::shuffle(path, out, options, destinations_by_seed(seed), tell_python(released, progress));
}

using RangeTuple = std::pair<std::uint64_t, std::uint64_t>;

// (what tells this shuffle from others, task of each shard of the result, (first, end, bytes) of each, (first, end) of
// each bucket, bytes of each shard of the input)
using PlanTuple = std::tuple<std::string, std::vector<std::string>,
                             std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>,
                             std::vector<RangeTuple>, std::vector<std::uint64_t>>;

PlanTuple plan_shuffle(const std::string& path, std::uint64_t seed, std::optional<std::uint64_t> window,
                       std::uint64_t memory, std::uint64_t shard_bytes, const py::object& progress) {
  Unlocked released;
  writer::ShuffleTasks planned =
      writer::plan_shuffle_tasks(path, shuffle_options(seed, window, memory, shard_bytes), destinations_by_seed(seed),
                                 tell_python(released, progress));
  PlanTuple found;
  std::get<0>(found) = std::move(planned.identity);
  std::get<1>(found) = std::move(planned.tasks);
  std::get<4>(found) = std::move(planned.input_bytes);
  for (const auto& each : planned.cuts.shards) {
    std::get<2>(found).emplace_back(each.range.begin, each.range.end, each.bytes);
  }
  for (const auto& each : planned.cuts.buckets) std::get<3>(found).emplace_back(each.begin, each.end);
  return found;
}

writer::ShuffleWork make_work(std::string path, std::uint64_t seed, std::optional<std::uint64_t> window,
                              std::uint64_t memory, std::uint64_t shard_bytes, std::string identity,
                              const std::vector<RangeTuple>& buckets) {
  writer::ShuffleWork work{std::move(path),
                           shuffle_options(seed, window, memory, shard_bytes),
                           destinations_by_seed(seed),
                           std::move(identity),
                           {}};
  for (const auto& [begin, end] : buckets) work.buckets.push_back({begin, end});
  return work;
}

void put_aside(const writer::ShuffleWork& work, std::size_t begin, std::size_t end, const std::string& file,
               bool is_synced) {
  Unlocked released;
  writer::put_shuffle_aside(work, begin, end, file, is_synced, {});
}

// (number, task, first destination, behind the last) of each.
using ShardTuple = std::tuple<std::uint64_t, std::string, std::uint64_t, std::uint64_t>;

void make_shards(const writer::ShuffleWork& work, const std::vector<ShardTuple>& shards, std::size_t first_bucket,
                 std::size_t end_bucket, std::vector<std::string> files, const std::string& out, bool overwrite,
                 const std::optional<std::string>& run) {
  Unlocked released;
  writer::ShuffledShardsTask task{{}, first_bucket, end_bucket, std::move(files)};
  for (const auto& [number, said, begin, end] : shards) task.shards.push_back({number, said, {begin, end}});
  writer::DatasetFolder folder(out, writer::Access::Shard, overwrite, run);
  writer::make_shuffled_shards(work, task, folder, {});
}

}  // namespace

void register_shuffle(py::module_& module) {
  module.def("shuffle", &shuffle_by_seed, py::arg("path"), py::arg("out"), py::arg("seed"), py::arg("window"),
             py::arg("memory"), py::arg("shard_bytes"), py::arg("scratch"), py::arg("resume"), py::arg("overwrite"),
             py::arg("progress"), py::arg("elsewhere") = py::none());
  module.def("plan_shuffle", &plan_shuffle, py::arg("path"), py::arg("seed"), py::arg("window"), py::arg("memory"),
             py::arg("shard_bytes"), py::arg("progress"));
  py::class_<writer::ShuffleWork>(module, "ShuffleWork",
                                  "What each process of a shuffle does: penstock._make.shuffle_tasks.")
      .def(py::init(&make_work), py::arg("path"), py::arg("seed"), py::arg("window"), py::arg("memory"),
           py::arg("shard_bytes"), py::arg("identity"), py::arg("buckets"))
      .def("put_aside", &put_aside, py::arg("begin"), py::arg("end"), py::arg("file"), py::arg("is_synced"))
      .def("make_shards", &make_shards, py::arg("shards"), py::arg("first_bucket"), py::arg("end_bucket"),
           py::arg("files"), py::arg("out"), py::arg("overwrite"), py::arg("run"));
}

}  // namespace penstock::bindings
