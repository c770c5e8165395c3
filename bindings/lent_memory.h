// Python objects whose memory is lent to the engine.
//
// The engine may let go of one on a native thread, which must not touch Python: it is then laid aside here until a
// thread that holds the GIL comes by.
#pragma once

#include "bindings/gil.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace penstock::bindings {

class LentObjects : public std::enable_shared_from_this<LentObjects> {
 public:
  /// Keeps `object` alive until the result is dropped, on whichever thread. Call with the GIL.
  std::shared_ptr<void> hold(pybind11::object object) {
    return {object.release().ptr(),
            [self = shared_from_this()](void* held) { self->let_go(static_cast<PyObject*>(held)); }};
  }

  /// Frees what was laid aside. Call with the GIL.
  void drain() {
    std::vector<PyObject*> aside;
    {
      const std::lock_guard lock(mutex_);
      aside.swap(aside_);
    }
    for (PyObject* object : aside) Py_DECREF(object);
  }

 private:
  void let_go(PyObject* object) {
    if (Py_IsInitialized() != 0 && has_gil()) {
      Py_DECREF(object);
      return;
    }
    const std::lock_guard lock(mutex_);
    aside_.push_back(object);
  }

  std::mutex mutex_;
  std::vector<PyObject*> aside_;
};

}  // namespace penstock::bindings
