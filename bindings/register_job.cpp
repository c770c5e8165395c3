// The job: positions in, picks out. Nothing here reads, so nothing lets go of the GIL but long picks.
#include "bindings/gil.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/job/job.h"
#include "core/job/steps.h"
#include "core/rows/source.h"
#include "shuffle/mixture.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using Schedule = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// A pick as Python sees it; −1 in all of them where a row is padding.
struct PickRow {
  std::int64_t source;
  std::int64_t epoch;
  std::int64_t index;
};

// The same, and where its row begins in the stream of its dataset; -1: nowhere, or the index would have to be read.
struct PlacedPickRow {
  std::int64_t source;
  std::int64_t epoch;
  std::int64_t index;
  std::int64_t first_record;
};

using Sources = std::vector<std::shared_ptr<Source>>;  // by the numbers of picks

Tail parse_tail(const std::string& tail) {
  if (tail == "pad") return Tail::Pad;
  if (tail == "drop") return Tail::Drop;
  if (tail == "short") return Tail::Short;
  raise(ErrorKind::InvalidArgument, "tail=\"{}\": must be \"pad\", \"drop\" or \"short\"", tail);
}

const char* name_of(Tail tail) {
  if (tail == Tail::Drop) return "drop";
  return tail == Tail::Pad ? "pad" : "short";
}

Uneven parse_uneven(const std::string& uneven) {
  if (uneven == "refuse") return Uneven::Refuse;
  if (uneven == "pad") return Uneven::Pad;
  raise(ErrorKind::InvalidArgument, "uneven=\"{}\": must be \"refuse\" or \"pad\"", uneven);
}

std::shared_ptr<Job> make_job(const std::vector<SourceIdentity>& sources, std::shared_ptr<Order> order,
                              std::optional<std::uint64_t> epochs, bool per_epoch, const std::string& tail,
                              const Ranges& skip, const Schedule& schedule, const std::string& uneven) {
  CursorOptions options;
  options.epochs = epochs;
  options.per_epoch = per_epoch;
  options.tail = parse_tail(tail);
  options.skip = skip;
  options.schedule = schedule;
  options.uneven = parse_uneven(uneven);
  return std::make_shared<Job>(std::move(order), sources, std::move(options));
}

// `rows` of them, of which those beyond the picks are padding.
py::array pick_rows(std::span<const Pick> picks, std::uint64_t rows) {
  py::array_t<PickRow> out(static_cast<py::ssize_t>(rows));
  PickRow* at = out.mutable_data();
  for (const Pick& pick : picks) {
    *at++ = {static_cast<std::int64_t>(pick.source), static_cast<std::int64_t>(pick.epoch),
             static_cast<std::int64_t>(pick.index)};
  }
  std::fill_n(at, rows - picks.size(), PickRow{-1, -1, -1});
  return out;
}

// (position, end, picks [rows], how many of them are valid, those of all ranks), or None at the end of the run.
py::object plan(const Job& job, std::uint64_t position, std::uint64_t rank, std::uint64_t world_size) {
  const Share share{rank, world_size};
  job.cursor().check(share);
  Job::check_position(position);
  const std::optional<BatchPlan> plan = job.plan(position, share);
  if (!plan) {
    job.cursor().check_over(position);
    return py::none();
  }
  const auto refuse = [&] {
    raise(ErrorKind::InvalidArgument, "no memory for the {} rows of a batch: use a smaller batch size",
          with_commas(plan->rows));
  };
  if (plan->rows > PTRDIFF_MAX / sizeof(PickRow)) refuse();
  try {
    std::vector<Pick> picks(plan->valid);
    job.pick(*plan, picks);
    return py::make_tuple(plan->position, plan->end, pick_rows(picks, plan->rows), plan->valid, plan->of_all);
  } catch (const std::bad_alloc&) {
    refuse();
    throw;
  } catch (const py::error_already_set& error) {
    if (error.matches(PyExc_MemoryError)) refuse();
    throw;
  }
}

PlacedPickRow placed(const Pick& pick, const Source& source) {
  Row row;
  row.epoch = pick.epoch;
  return {static_cast<std::int64_t>(pick.source), static_cast<std::int64_t>(pick.epoch),
          static_cast<std::int64_t>(pick.index),
          source.info().shape.ragged ? -1 : source.first_record(row, pick.index)};
}

py::array picks(const Job& job, std::uint64_t first, std::uint64_t count, const Sources& sources) {
  std::uint64_t end = 0;
  if (__builtin_add_overflow(first, count, &end) || count > PTRDIFF_MAX / sizeof(PlacedPickRow)) {
    raise(ErrorKind::InvalidArgument, "{} picks from position {}: at most to 2^63", with_commas(count),
          with_commas(first));
  }
  Job::check_position(end);
  try {
    std::vector<Pick> picks(count);
    py::array_t<PlacedPickRow> out(static_cast<py::ssize_t>(count));
    PlacedPickRow* at = out.mutable_data();
    {
      const Unlocked released;
      job.order().pick(first, 1, picks);
      for (const Pick& pick : picks) *at++ = placed(pick, *sources.at(pick.source));
    }
    return out;
  } catch (const std::bad_alloc&) {
    raise(ErrorKind::InvalidArgument, "no memory for {} picks of {} bytes: ask for fewer at once", with_commas(count),
          sizeof(Pick) + sizeof(PlacedPickRow));
  }
}

// (position, end, positions [rows], picks [rows]) of all ranks' batch that begins at `position`, without padding; None
// at the end of the run.
py::object batch_at(const Job& job, std::uint64_t position) {
  Job::check_position(position);
  const std::optional<BatchPlan> plan = job.plan(position, Share{0, 1});
  if (!plan) {
    job.cursor().check_over(position);
    return py::none();
  }
  std::vector<Pick> picks(plan->valid);
  job.pick(*plan, picks);
  py::array_t<std::int64_t> positions(static_cast<py::ssize_t>(plan->valid));
  std::int64_t* at = positions.mutable_data();
  for (const PositionRun& run : plan->runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) *at++ = static_cast<std::int64_t>(run.first + i * run.stride);
  }
  return py::make_tuple(plan->position, plan->end, positions, pick_rows(picks, plan->valid));
}

// What decides how positions become batches, and is in no state: (schedule, end of the run or None, epoch's size where
// batches end with epochs or None, tail, uneven).
py::tuple batching(const Job& job) {
  const CursorOptions& options = job.cursor().options();
  const auto none_or = [](bool is_there, std::uint64_t value) {
    return is_there ? py::object(py::int_(value)) : py::object(py::none());
  };
  return py::make_tuple(options.schedule, none_or(options.epochs.has_value(), job.cursor().run_end()),
                        none_or(options.per_epoch, options.epoch_size), name_of(options.tail),
                        options.uneven == Uneven::Pad ? "pad" : "refuse");
}

// A plan is immutable: pybind11 holds no pointers to const.
std::shared_ptr<shuffle::MixturePlan> plan_of(const Job& job) {
  const auto* const mixture = dynamic_cast<const shuffle::Mixture*>(&job.order());
  return mixture == nullptr ? nullptr : std::const_pointer_cast<shuffle::MixturePlan>(mixture->plan());
}

}  // namespace

OnMismatch parse_on_mismatch(const std::string& text) {
  if (text == "refuse") return OnMismatch::Refuse;
  if (text == "restart") return OnMismatch::Restart;
  if (text == "keep_position") return OnMismatch::KeepPosition;
  raise(ErrorKind::InvalidArgument, "on_mismatch=\"{}\": must be \"refuse\", \"restart\" or \"keep_position\"", text);
}

py::tuple resume_tuple(const Job& job, const Resume& resume) {
  return py::make_tuple(job.epoch(resume.position), resume.position, job.cursor().steps_before(resume.position),
                        resume.message);
}

void register_job(py::module_& module) {
  module.def("ranks_that_suit", &ranks_that_suit, py::arg("size"), py::arg("micro_batches"),
             "Numbers of ranks with equal shares of it, which the micro-batches divide, rising.");
  module.def(
      "batch_rows",
      [](std::uint64_t size, std::uint64_t world_size, std::uint64_t micro_batches) {
        if (world_size == 0 || micro_batches == 0) raise(ErrorKind::InvalidArgument, "0 ranks, or 0 micro-batches");
        return batch_rows(size, {0, world_size, micro_batches});
      },
      py::arg("size"), py::arg("world_size"), py::arg("micro_batches") = 1,
      "Rows of each rank's batch, padding included: size / world_size rounded up, to a multiple of micro_batches.");
  PYBIND11_NUMPY_DTYPE(PickRow, source, epoch, index);
  PYBIND11_NUMPY_DTYPE(PlacedPickRow, source, epoch, index, first_record);
  py::class_<Job, std::shared_ptr<Job>>(module, "Job", "Order, cursor and sources; see penstock.Job.")
      .def(py::init(&make_job), py::kw_only(), py::arg("sources"), py::arg("order"), py::arg("epochs"),
           py::arg("per_epoch"), py::arg("tail"), py::arg("skip"), py::arg("schedule"), py::arg("uneven") = "refuse")
      .def("plan", &plan, py::arg("position"), py::arg("rank"), py::arg("world_size"),
           "(position, end, picks [rows], valid rows, those of all ranks) of a rank's next batch; None at the end of "
           "the\n"
           "run.")
      .def(
          "check_share",
          [](const Job& job, std::uint64_t rank, std::uint64_t world_size) {
            job.cursor().check({rank, world_size});
          },
          py::arg("rank"), py::arg("world_size"), "Refuses ranks that a batch of the schedule does not suit.")
      .def("picks", &picks, py::arg("first"), py::arg("count"), py::arg("sources"),
           "What stands at `count` positions from `first` on: structured [count]. first_record is -1 in documents.")
      .def("batch_at", &batch_at, py::arg("position"),
           "(position, end, positions [rows], picks [rows]) of all ranks' next batch; None at the end of the run.")
      .def(
          "begin_of_step", [](const Job& job, std::uint64_t step) { return begin_of_step(job.cursor(), step); },
          py::arg("step"), "The position at which batch number `step` begins.")
      .def_property_readonly("batching", &batching,
                             "(schedule, end or None, size of epochs that end batches, tail,\n"
                             "uneven).")
      .def(
          "load",
          [](const Job& job, std::uint64_t version, std::uint64_t position, std::string text,
             const std::string& on_mismatch) {
            return resume_tuple(job, job.load({version, position, std::move(text)}, parse_on_mismatch(on_mismatch)));
          },
          py::arg("version"), py::arg("position"), py::arg("job"), py::arg("on_mismatch"),
          "(epoch, position, step, message) of where a state goes on.")
      .def(
          "resumed",
          [](std::shared_ptr<Job> job, std::uint64_t version, std::uint64_t position, std::string text) {
            const Unlocked released;
            Resume resume = job->load({version, position, std::move(text)}, OnMismatch::Refuse);
            return resume.job ? std::make_shared<Job>(*resume.job) : std::move(job);
          },
          py::arg("version"), py::arg("position"), py::arg("job"), "The job with the weights that a state's had set.")
      .def("json_before", &Job::json_before, py::arg("position"),
           "`json` with those of the weights that were set that begin before `position`.")
      .def(
          "set_before",
          [](const Job& job, std::uint64_t position) {
            const auto steering = job.order().steering();
            return steering ? steering->count_before(position) : 0;
          },
          py::arg("position"), "How many weights were set that begin before `position`.")
      .def_property_readonly("mixture_plan", &plan_of, "With the weights that were set; None where it is no mixture's.")
      .def_property_readonly("is_steered", [](const Job& job) { return job.order().steering() != nullptr; })
      .def_property_readonly("summary", &Job::summary, "`json` with a digest of the weights that were set.")
      .def("length", [](const Job& job, std::uint64_t position) { return job.cursor().length(position); })
      .def("steps_before", [](const Job& job, std::uint64_t position) { return job.cursor().steps_before(position); })
      .def("epoch", &Job::epoch, py::arg("position"))
      .def("describe", &Job::describe, py::arg("position"))
      .def_property_readonly_static("version", [](const py::object&) { return kStateVersion; })
      .def_property_readonly("json", &Job::json);
}

}  // namespace penstock::bindings
