// The loader: waits without the GIL, looks for signals every 50 ms, lends memory with the GIL.
#include "bindings/column_specs.h"
#include "bindings/gil.h"
#include "bindings/lent_memory.h"
#include "bindings/python_store.h"
#include "bindings/register.h"
#include "core/base/cores.h"
#include "core/base/error.h"
#include "core/base/fork_count.h"
#include "core/engine/loader.h"
#include "core/io/cache/cached_store.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

// What is read through Python though its dataset was opened natively; a local cache of it is used all the same. Any
// thread.
class FarReader {
 public:
  explicit FarReader(std::shared_ptr<ByteStore> store) : store_(std::move(store)) {}

  ByteStore& of(ByteStore& files) {
    const auto is_of_python = [](ByteStore* store) { return dynamic_cast<PythonStore*>(store) != nullptr; };
    auto* const cache = dynamic_cast<CachedStore*>(&files);
    if (cache == nullptr) return is_of_python(&files) ? files : *store_;
    if (is_of_python(cache->inner().get())) return files;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<ByteStore>& made = caches_[cache];
    if (!made) made = cache->filled_through(store_);
    return *made;
  }

 private:
  const std::shared_ptr<ByteStore> store_;
  std::mutex mutex_;
  std::map<CachedStore*, std::shared_ptr<ByteStore>> caches_;
};

constexpr auto kLoaderSignalPeriod = std::chrono::milliseconds(50);

// A core Loader with what Python needs around it.
class PythonLoader {
 public:
  /// `local` is how it reads local files.
  PythonLoader(LoaderOptions options, const py::object& allocate, std::shared_ptr<ByteStore> local)
      : local_(std::move(local)) {
    if (!allocate.is_none()) {
      lent_ = std::make_shared<LentObjects>();
      // allocate(bytes) -> (owner, address): called in poll(), which runs with the GIL.
      options.lend = [allocate, lent = lent_](Slab& slab, std::uint64_t bytes) {
        try {
          const py::tuple answer = from_python([&] { return PyObject_CallFunction(allocate.ptr(), "K", bytes); });
          const auto address = answer[1].cast<std::uintptr_t>();
          slab.lend(reinterpret_cast<std::byte*>(address), bytes, lent->hold(answer[0]));
        } catch (py::error_already_set& error) {
          if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C
          throw NotLent(std::move(error));
        }
      };
    }
    loader_ = std::make_unique<Loader>(std::move(options));
  }

  ~PythonLoader() {
    {
      const Unlocked released;  // joins
      loader_->close();
    }
    loader_.reset();
    drain();
  }
  PythonLoader(const PythonLoader&) = delete;
  PythonLoader& operator=(const PythonLoader&) = delete;

  // The next batch, or null at the end of this `for`.
  std::shared_ptr<Batch> next() {
    check_free();
    const Busy busy(*this);
    drain();
    while (true) {
      if (std::shared_ptr<Batch> batch = poll()) return batch;
      if (loader_->ended()) return nullptr;
      {
        const Unlocked released;
        loader_->wait(kLoaderSignalPeriod);
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
  }

  Loader& idle() {
    check_free();
    return *loader_;
  }

  // A state may be many MB of text, which is looked at without the GIL; what other threads may ask changes with it.
  Resume load(const State& state, OnMismatch on_mismatch) {
    Loader& loader = idle();
    const Busy busy(*this);
    const std::shared_ptr<const Job> job = loader.shared_job();
    Resume resume = [&] {
      const Unlocked released;
      return job->load(state, on_mismatch);
    }();
    return loader.resume(std::move(resume));
  }

  void close() {
    Loader& loader = idle();
    const Busy busy(*this);
    {
      const Unlocked released;  // joins
      loader.close();
    }
    drain();  // the last threads to let go of a batch had no GIL
  }

  // close() when the interpreter ends, after begin_exit(). A daemon thread may be in next(): it stays there for ever,
  // and the loader is closed once that thread touches nothing of it.
  void close_at_exit() {
    if (is_forked()) return;
    const Unlocked released;
    while (busy_ && !parked_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    loader_->close();
  }

  [[nodiscard]] const Loader& get() const { return *loader_; }
  [[nodiscard]] std::string reader() const { return local_->name(); }
  [[nodiscard]] bool is_forked() const noexcept { return fork_count() != forks_; }

 private:
  class Busy {
   public:
    explicit Busy(PythonLoader& loader) : flag_(loader.busy_), tells_(loader.parked_) { flag_ = true; }
    ~Busy() { flag_ = false; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    std::atomic<bool>& flag_;
    const TellsParking tells_;
  };

  std::shared_ptr<Batch> poll() {
    try {
      return loader_->poll();
    } catch (const NotLent& refused) {
      throw refused.error();
    }
  }

  void drain() const {
    if (lent_ && !is_forked()) lent_->drain();
  }

  // In a forked child the thread that was in next() is gone; the core loader refuses there in words of its own.
  void check_free() const {
    stay_if_exiting();
    if (!busy_ || is_forked()) return;
    raise(ErrorKind::InvalidArgument, "another thread is in next() of this loader: one at a time");
  }

  const std::shared_ptr<ByteStore> local_;
  std::shared_ptr<LentObjects> lent_;  // null unless memory is lent
  std::unique_ptr<Loader> loader_;
  const std::uint64_t forks_ = fork_count();
  std::atomic<bool> busy_ = false;    // a thread is in next(); changed with the GIL
  std::atomic<bool> parked_ = false;  // that thread stays there for ever
};

Reader parse_reader(const std::string& text) {
  if (text == "auto") return Reader::Auto;
  if (text == "pread") return Reader::Pread;
  if (text == "uring") return Reader::Uring;
  if (text == "direct") return Reader::Direct;
  if (text == "mmap") return Reader::Mmap;
  raise(ErrorKind::InvalidArgument, "reader=\"{}\": must be \"auto\", \"pread\", \"uring\", \"direct\" or \"mmap\"",
        text);
}

/// (rank, size, layout, lookahead)
using SliceTuple = std::tuple<std::uint64_t, std::uint64_t, std::string, std::uint64_t>;
using CostArray = py::array_t<std::uint64_t, py::array::c_style>;
/// ("attention" | "tokens" | "given", records at the end of a row that do not count, a cost for each observation)
using CostTuple = std::tuple<std::string, std::uint64_t, std::optional<CostArray>>;
/// (a rule for each source, micro batches)
using BalanceTuple = std::tuple<std::vector<CostTuple>, std::uint64_t>;

std::shared_ptr<const RowSlice> slice_of(const SliceTuple& given, const SourceInfo& source) {
  const auto& [rank, size, layout, lookahead] = given;
  RowSlice::Spec spec{rank, size, RowSlice::Layout::Zigzag};
  if (layout == "contiguous") {
    spec.layout = RowSlice::Layout::Contiguous;
  } else if (layout == "zigzag-documents") {
    spec.layout = RowSlice::Layout::ZigzagDocuments;
  } else if (layout != "zigzag") {
    raise(ErrorKind::InvalidArgument, "layout=\"{}\": must be \"zigzag\", \"contiguous\" or \"zigzag-documents\"",
          layout);
  }
  return std::make_shared<const RowSlice>(spec, source, lookahead);
}

BalanceOptions balance_of(const BalanceTuple& given) {
  BalanceOptions balance;
  for (const auto& [kind, shorten, costs] : std::get<0>(given)) {
    CostRule rule{CostRule::Kind::Attention, shorten, nullptr};
    if (kind == "tokens") {
      rule.kind = CostRule::Kind::Tokens;
    } else if (kind == "given") {
      rule.kind = CostRule::Kind::Given;
    } else if (kind != "attention") {
      raise(ErrorKind::InvalidArgument, "cost=\"{}\": must be \"attention\" or \"tokens\"", kind);
    }
    if (costs) {
      rule.given = std::make_shared<const std::vector<std::uint64_t>>(costs->data(), costs->data() + costs->size());
    }
    balance.rules.push_back(std::move(rule));
  }
  return balance;
}

// A constructor's function that knows the process's store of local files. Sources have the same fields and values;
// sequences and what is made are by source.
struct MakeLoader {
  std::shared_ptr<LocalStore> local;

  std::unique_ptr<PythonLoader> operator()(
      std::shared_ptr<Job> job, const std::vector<std::shared_ptr<Source>>& sources,
      const std::vector<FieldSpec>& fields, const std::vector<ComputedList>& computed,
      const std::vector<MakerList>& made, const std::vector<std::optional<FillInTheMiddleSpec>>& middles,
      const std::vector<std::string>& values, unsigned parts, std::uint64_t rank, std::uint64_t world_size,
      const std::string& reader, unsigned threads, unsigned cores, unsigned prefetch, std::uint64_t max_bytes,
      const py::object& allocate, const std::optional<SliceTuple>& slice, const std::optional<BalanceTuple>& balance,
      const std::optional<std::shared_ptr<ByteStore>>& far_reader, unsigned takers) const {
    LoaderOptions options;
    options.job = std::move(job);
    options.share = {rank, world_size, balance ? std::get<1>(*balance) : 1};
    BatchFormats formats;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      formats.emplace_back(sources[i], column_specs(fields, computed.at(i), made.at(i), values),
                           static_cast<Parts>(parts), slice ? slice_of(*slice, sources[i]->info()) : nullptr,
                           middles.at(i));
    }
    if (formats.size() > 1) formats = join(std::move(formats));
    options.formats = std::make_shared<const BatchFormats>(std::move(formats));
    std::shared_ptr<ByteStore> reading = local->reading_by(parse_reader(reader));
    std::shared_ptr<FarReader> far;
    if (far_reader) far = std::make_shared<FarReader>(*far_reader);
    options.through = [local = local, reading, far](ByteStore& files) -> ByteStore& {
      if (&files == local.get()) return *reading;
      return far ? far->of(files) : files;
    };
    if (balance) options.balance = balance_of(*balance);
    options.threads = threads;
    options.cores = cores;
    options.prefetch = prefetch;
    options.max_bytes = max_bytes;
    if (takers > 0) options.hand_over = std::make_shared<HandOver>(takers);
    return std::make_unique<PythonLoader>(std::move(options), allocate, std::move(reading));
  }
};

using Places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Places to_pairs(const std::vector<RowChoice::Place>& places) {
  Places out;
  out.reserve(places.size());
  for (const auto& [rank, row] : places) out.emplace_back(rank, row);
  return out;
}

// Sources are looked at only where rows go by what they cost.
Places row_places(const Job& job, std::uint64_t position, std::uint64_t world_size,
                  const std::vector<std::shared_ptr<Source>>& sources, const std::optional<BalanceTuple>& balance,
                  std::uint64_t most_bytes, const std::shared_ptr<LocalStore>& local) {
  const Share share{0, world_size, balance ? std::get<1>(*balance) : 1};
  job.cursor().check(share);
  Job::check_position(position);
  std::optional<BalanceOptions> costs;
  if (balance) costs = balance_of(*balance);
  const Unlocked released;
  const std::optional<BatchPlan> plan = job.plan(position, share);
  if (!plan) return {};
  if (!costs) return to_pairs(RowChoice(share).places(job, *plan));
  const std::vector<std::shared_ptr<const Source>> asked(sources.begin(), sources.end());
  const RowChoice rows(share, std::make_unique<const RowCosts>(
                                  asked, std::move(costs->rules),
                                  read_local_through(local, local->reading_once(plan->of_all)), most_bytes));
  return to_pairs(rows.places(job, *plan));
}

// The names of penstock.Metrics; read_seconds as (sum, counts).
py::dict metrics_dict(const Metrics& metrics) {
  const auto seconds = [](std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); };
  py::dict found;
  found["batches"] = metrics.batches;
  found["observations"] = metrics.observations;
  found["bytes_read"] = metrics.bytes_read;
  found["reads"] = metrics.reads;
  found["merged_reads"] = metrics.merged_reads;
  found["read_seconds"] = py::make_tuple(seconds(metrics.read_time), metrics.read_times);
  found["queue_depth"] = metrics.queue_depth;
  found["stalls"] = metrics.stalls;
  found["stall_seconds"] = seconds(metrics.stall_time);
  found["retries"] = metrics.retries;
  found["memory_bytes"] = metrics.memory_bytes;
  return found;
}

py::tuple state_tuple(const State& state) {
  return py::make_tuple(state.version, state.position, state.job);
}

using LoaderClass = py::class_<PythonLoader>;

void register_functions(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  module.def("usable_cores", py::overload_cast<std::uint64_t>(&usable_cores), py::arg("processes"),
             "Cores that this process, one of `processes` alike, may use: affinity and quota of its control groups.");
  module.def(
      "row_places",
      [local](const Job& job, std::uint64_t position, std::uint64_t world_size,
              const std::vector<std::shared_ptr<Source>>& sources, const std::optional<BalanceTuple>& balance,
              std::uint64_t most_bytes) {
        return row_places(job, position, world_size, sources, balance, most_bytes, local);
      },
      py::arg("job"), py::arg("position"), py::arg("world_size"), py::arg("sources"), py::arg("balance"),
      py::arg("most_bytes"),
      "(rank, row) of each observation of the global batch that begins there, by the job's own batch sizes.");
}

void add_methods(LoaderClass& type, const std::shared_ptr<LocalStore>& local) {
  type.def(py::init(MakeLoader{local}), py::kw_only(), py::arg("job"), py::arg("sources"), py::arg("fields"),
           py::arg("computed"), py::arg("made"), py::arg("middles"), py::arg("values"), py::arg("parts"),
           py::arg("rank"), py::arg("world_size"), py::arg("reader"), py::arg("threads"), py::arg("cores"),
           py::arg("prefetch"), py::arg("max_bytes"), py::arg("allocate"), py::arg("slice") = py::none(),
           py::arg("balance") = py::none(), py::arg("far_reader") = py::none(), py::arg("takers") = 0)
      .def("next", &PythonLoader::next, "The next batch; None at the end of this `for`.")
      .def("begin", [](PythonLoader& loader) { loader.idle().begin(); })
      .def("state", [](const PythonLoader& loader) { return state_tuple(loader.get().state()); })
      .def(
          "load",
          [](PythonLoader& loader, std::uint64_t version, std::uint64_t position, std::string job,
             const std::string& on_mismatch) {
            const Resume resume = loader.load({version, position, std::move(job)}, parse_on_mismatch(on_mismatch));
            return resume_tuple(loader.get().job(), resume);
          },
          py::arg("version"), py::arg("position"), py::arg("job"), py::arg("on_mismatch"),
          "(epoch, position, step, message) of where it goes on.")
      .def("seek", [](PythonLoader& loader, std::uint64_t position) { loader.idle().seek(position); })
      .def("set_global_batch_size",
           [](PythonLoader& loader, std::uint64_t size) { loader.idle().set_global_batch_size(size); })
      .def(
          "set_weights",
          [](PythonLoader& loader, std::uint64_t position, std::vector<std::uint64_t> weights) {
            return loader.idle().set_weights(position, std::move(weights));
          },
          py::arg("position"), py::arg("weights"), "Where they begin.")
      .def(
          "metrics", [](const PythonLoader& loader) { return metrics_dict(loader.get().metrics()); },
          "What was counted since the loader was made, by the names of penstock.Metrics; by any thread.")
      .def("close", &PythonLoader::close)
      .def("close_at_exit", &PythonLoader::close_at_exit, "close(), whatever other threads are at.");
}

// What it says of itself.
void add_answers(LoaderClass& type) {
  type.def("describe", [](const PythonLoader& loader) { return loader.get().job().describe(loader.get().position()); })
      .def("length",
           [](const PythonLoader& loader) { return loader.get().job().cursor().length(loader.get().position()); })
      .def(
          "row_places",
          [](const PythonLoader& loader, const Job& job, std::uint64_t position) {
            const Unlocked released;
            return to_pairs(loader.get().row_places(job, position));
          },
          py::arg("job"), py::arg("position"), "(rank, row) of each observation of the global batch that begins there.")
      .def("tail_rows", [](const PythonLoader& loader) { return loader.get().tail_rows(); })
      .def_property_readonly(
          "batch_rows", [](const PythonLoader& loader) { return loader.get().batch_rows(); },
          "Rows of this rank's batches at the position, padding included.")
      .def_property_readonly(
          "job", [](const PythonLoader& loader) { return std::make_shared<Job>(loader.get().job()); },
          "The job as it is now, with the batch sizes that were set.")
      .def_property_readonly("position", [](const PythonLoader& loader) { return loader.get().position(); })
      .def_property_readonly("reader",
                             [](const PythonLoader& loader) {
                               const Unlocked released;  // may try a ring
                               return loader.reader();
                             })
      .def_property_readonly("threads", [](const PythonLoader& loader) { return loader.get().threads(); })
      .def_property_readonly("hand_over", [](const PythonLoader& loader) { return loader.get().hand_over(); })
      .def_property_readonly("limit_bytes", [](const PythonLoader& loader) { return loader.get().limit_bytes(); })
      .def_property_readonly("usage", [](const PythonLoader& loader) {
        const BatchPool::Usage usage = loader.get().usage();
        return py::make_tuple(usage.batches, usage.bytes);
      });
}

}  // namespace

void register_loader(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  register_batch(module, local);
  register_hand_over(module);
  register_functions(module, local);
  LoaderClass type(module, "Loader", "The native loader; see penstock.Loader.");
  add_methods(type, local);
  add_answers(type);
}

}  // namespace penstock::bindings
