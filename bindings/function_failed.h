// FunctionFailed: the error of a user's function of Python, with the exception that it raised as its cause.
#pragma once

#include "core/base/error.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>

namespace penstock::bindings {

/// Kept by threads that may not touch Python: `raised` is what LentObjects::hold() gave.
class FunctionFailed final : public Error {
 public:
  FunctionFailed(const std::string& message, std::shared_ptr<void> raised)
      : Error(ErrorKind::InvalidArgument, message), raised_(std::move(raised)) {}

  /// The exception, with its traceback. Call with the GIL.
  [[nodiscard]] pybind11::object raised() const {
    return pybind11::reinterpret_borrow<pybind11::object>(static_cast<PyObject*>(raised_.get()));
  }

 private:
  std::shared_ptr<void> raised_;
};

}  // namespace penstock::bindings
