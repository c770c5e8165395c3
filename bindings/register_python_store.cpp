// Stores through Python: what a thread of Python's is handed, and what it may answer. See bindings/python_calls.h.
#include "bindings/gil.h"
#include "bindings/python_calls.h"
#include "bindings/python_store.h"
#include "bindings/register.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using RunsUnlocked = py::call_guard<Unlocked>;

// Bytes of an object of Python's, while it lives. Of a thread with the GIL.
class Lent {
 public:
  explicit Lent(const py::handle& object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
  }
  ~Lent() { PyBuffer_Release(&view_); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_ = {};
};

// A call that is answered once, also where its thread fails.
class TakenCall {
 public:
  TakenCall(std::shared_ptr<PythonCalls> calls, PythonCalls::Call call)
      : calls_(std::move(calls)), call_(std::move(call)) {}
  ~TakenCall() {
    if (!is_answered_) calls_->again(call_.requests, "it was left without an answer", false);
  }
  TakenCall(const TakenCall&) = delete;
  TakenCall& operator=(const TakenCall&) = delete;

  [[nodiscard]] const PythonCalls::Call& get() const { return call_; }

  [[nodiscard]] bool is_short(const py::sequence& buffers) const {
    check_count(buffers);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (Lent(buffers[i]).bytes().size() != call_.requests[i]->size) return true;
    }
    return false;
  }

  void give(const py::sequence& buffers) {
    check_count(buffers);
    std::vector<std::unique_ptr<Lent>> lent;
    std::vector<std::span<const std::byte>> bytes;
    for (const py::handle each : buffers) {
      lent.push_back(std::make_unique<Lent>(each));
      bytes.push_back(lent.back()->bytes());
    }
    is_answered_ = true;
    const Unlocked released;
    calls_->give(call_.requests, bytes);
  }
  void give_size(std::uint64_t bytes) {
    is_answered_ = true;
    calls_->give_size(call_.requests, bytes);
  }
  void give_names(const std::vector<std::string>& names) {
    is_answered_ = true;
    calls_->give_names(call_.requests, names);
  }
  void again(const std::string& reason, bool is_unreachable) {
    is_answered_ = true;
    calls_->again(call_.requests, reason, is_unreachable);
  }
  void refuse(const std::string& kind, const std::string& what) {
    is_answered_ = true;
    const ErrorKind as = kind == "missing"   ? ErrorKind::NotFound
                         : kind == "changed" ? ErrorKind::Corruption
                                             : ErrorKind::IoError;
    calls_->refuse(call_.requests, as, what);
  }
  void compare_size(std::uint64_t bytes) { calls_->compare_size(call_.requests, bytes); }

 private:
  void check_count(const py::sequence& buffers) const {
    if (buffers.size() != call_.requests.size()) {
      throw py::type_error(
          fmt::format("read() returned {} buffers for {} ranges", buffers.size(), call_.requests.size()));
    }
  }

  const std::shared_ptr<PythonCalls> calls_;
  const PythonCalls::Call call_;
  bool is_answered_ = false;  // what it asked for may be another call's by now
};

template <typename Number>
std::vector<std::uint64_t> each_of(const TakenCall& taken, Number StoreRequest::*number) {
  std::vector<std::uint64_t> numbers;
  for (const auto& request : taken.get().requests) numbers.push_back((*request).*number);
  return numbers;
}

const char* kind_of(const TakenCall& taken) {
  switch (taken.get().wanted) {
    case Wanted::Range: return "ranges";
    case Wanted::Whole: return "whole";
    case Wanted::Size: return "size";
    case Wanted::Names: return "names";
  }
  return "";
}

}  // namespace

void register_python_store(py::module_& module) {
  py::class_<TakenCall>(module, "StoreCall", "What a thread is to fetch, and its answer: one, once.")
      .def_property_readonly("kind", &kind_of, "ranges, whole, size or names")
      .def_property_readonly("path", [](const TakenCall& taken) { return taken.get().path; })
      .def_property_readonly("offsets", [](const TakenCall& taken) { return each_of(taken, &StoreRequest::offset); })
      .def_property_readonly("sizes", [](const TakenCall& taken) { return each_of(taken, &StoreRequest::size); })
      .def_property_readonly(
          "wants_thread", [](const TakenCall& taken) { return taken.get().wants_thread; },
          "Another thread is to begin.")
      .def("is_short", &TakenCall::is_short, py::arg("buffers"), "Whether some range has not the bytes asked for.")
      .def("give", &TakenCall::give, py::arg("buffers"), "Of each range, or the one of the whole file.")
      .def("give_size", &TakenCall::give_size, RunsUnlocked(), py::arg("bytes"))
      .def("give_names", &TakenCall::give_names, RunsUnlocked(), py::arg("names"))
      .def("again", &TakenCall::again, RunsUnlocked(), py::arg("reason"), py::arg("is_unreachable"),
           "It failed in a way that may pass.")
      .def("refuse", &TakenCall::refuse, RunsUnlocked(), py::arg("kind"), py::arg("what"),
           "kind: missing, changed, or another")
      .def("compare_size", &TakenCall::compare_size, RunsUnlocked(), py::arg("bytes"), "The file has so many.");
  py::class_<PythonCalls, std::shared_ptr<PythonCalls>>(module, "StoreCalls", "See bindings/python_calls.h.",
                                                        py::dynamic_attr())
      .def(py::init([](std::size_t connections, std::size_t ranges_a_call, double deadline) {
             const auto seconds = std::chrono::duration<double>(deadline);
             return PythonCalls::make(
                 {connections, ranges_a_call, std::chrono::duration_cast<std::chrono::nanoseconds>(seconds)});
           }),
           py::kw_only(), py::arg("connections"), py::arg("ranges_a_call"), py::arg("deadline"))
      .def(
          "take",
          [](const std::shared_ptr<PythonCalls>& calls) -> std::unique_ptr<TakenCall> {
            auto call = calls->take();
            return call ? std::make_unique<TakenCall>(calls, std::move(*call)) : nullptr;
          },
          RunsUnlocked(), "What to do next; None: the thread is to end.")
      .def("has_no_thread", &PythonCalls::has_no_thread, RunsUnlocked(), "The one that was wanted could not begin.")
      .def("stop", &PythonCalls::stop, RunsUnlocked());
  py::class_<PythonStore, ByteStore, std::shared_ptr<PythonStore>>(
      module, "PythonStore", "Files that threads of Python fetch.", py::dynamic_attr())
      .def(py::init([](std::shared_ptr<PythonCalls> calls, bool has_whole) {
             return std::make_shared<PythonStore>(std::move(calls), has_whole, &look_for_signals);
           }),
           py::kw_only(), py::arg("calls"), py::arg("has_whole"));
}

}  // namespace penstock::bindings
