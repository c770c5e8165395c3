// Python objects whose memory is lent to the engine.
//
// The engine may let go of one on a native thread, which must not touch Python: it is then laid aside here until a
// thread that holds the GIL comes by. It may have no memory then, so there is room for all that are lent.
#pragma once

#include "bindings/gil.h"

#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace penstock::bindings {

/// What the lender of memory raised instead: for the engine there is no memory.
class NotLent : public std::bad_alloc {
 public:
  explicit NotLent(pybind11::error_already_set error) : error_(std::move(error)) {}
  [[nodiscard]] const char* what() const noexcept override { return "no memory was lent"; }
  [[nodiscard]] const pybind11::error_already_set& error() const noexcept { return error_; }

 private:
  pybind11::error_already_set error_;
};

class LentObjects : public std::enable_shared_from_this<LentObjects> {
 public:
  /// Keeps `object` alive until the result is dropped, on whichever thread. Call with the GIL.
  std::shared_ptr<void> hold(pybind11::object object) {
    {
      const std::lock_guard lock(mutex_);
      aside_.reserve(lent_ + 1 + aside_.size());
      ++lent_;
    }
    return {object.release().ptr(),
            [self = shared_from_this()](void* held) { self->let_go(static_cast<PyObject*>(held)); }};
  }

  /// Frees what was laid aside. Call with the GIL.
  void drain() {
    while (PyObject* const object = take()) Py_DECREF(object);
  }

 private:
  PyObject* take() noexcept {
    const std::lock_guard lock(mutex_);
    if (aside_.empty()) return nullptr;
    PyObject* const object = aside_.back();
    aside_.pop_back();
    return object;
  }
  void let_go(PyObject* object) noexcept {
    const bool is_here = Py_IsInitialized() != 0 && has_gil();
    {
      const std::lock_guard lock(mutex_);
      --lent_;
      if (!is_here) aside_.push_back(object);
    }
    if (is_here) Py_DECREF(object);
  }

  std::mutex mutex_;
  std::size_t lent_ = 0;
  std::vector<PyObject*> aside_;
};

}  // namespace penstock::bindings
