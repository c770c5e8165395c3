#include "bindings/gil.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/base/retry_budget.h"
#include "core/io/http/address.h"
#include "core/io/http/curl.h"
#include "core/io/http/http_store.h"
#include "core/io/http/signed_addresses.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstddef>
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

using RunsUnlocked = py::call_guard<Unlocked>;

std::chrono::nanoseconds seconds(double count) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(count));
}

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

using HiddenTuple = std::tuple<std::string, std::string, std::string>;

HttpOptions options_of(const std::string& server, std::vector<std::string> headers, std::string ca_file,
                       std::size_t connections, double deadline, bool check_etag) {
  HttpOptions options;
  options.server = origin_of(server);
  options.headers = std::move(headers);
  options.ca_file = std::move(ca_file);
  options.connections = connections;
  options.deadline = seconds(deadline);
  options.check_etag = check_etag;
  options.while_waiting = look_for_signals;
  return options;
}

std::shared_ptr<Addresses> addresses_of(const std::vector<HiddenTuple>& hidden, bool has_headers) {
  std::vector<HiddenParts> parts;
  parts.reserve(hidden.size());
  for (const auto& [shown, userinfo, query] : hidden) parts.push_back({shown, userinfo, query});
  return plain_addresses(std::move(parts), has_headers);
}

py::bytes read_range(ByteStore& store, const std::string& path, std::uint64_t offset, std::size_t size) {
  auto made = py::reinterpret_steal<py::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(size)));
  if (!made) throw py::error_already_set();
  auto* const begin = reinterpret_cast<std::byte*>(PyBytes_AsString(made.ptr()));  // nobody else has it yet
  {
    const Unlocked released;
    store.read_small(path, offset, {begin, size});
  }
  return made;
}

// The object that a `with` statement enters and leaves.
struct OperationScope {
  OperationScope(RetryBudget* given, bool is_apart_)
      : own(given != nullptr ? nullptr : std::make_unique<RetryBudget>()),
        budget(given != nullptr ? *given : *own),
        is_apart(is_apart_) {}

  const std::unique_ptr<RetryBudget> own;
  RetryBudget& budget;
  const bool is_apart;
  std::optional<RetryBudget::Operation> inside;
};

void register_retry_budget(py::module_& module) {
  py::class_<RetryBudget>(module, "RetryBudget", "How long one operation may go on failing, over all its requests.")
      .def(py::init<>())
      .def_static("present", &RetryBudget::present, py::return_value_policy::reference,
                  "The budget of the operation that this thread is in, for as long as it is.")
      .def(
          "left", [](const RetryBudget& budget, double deadline) { return seconds_of(budget.left(seconds(deadline))); },
          py::arg("deadline"), "Seconds for a request that begins now.")
      .def(
          "is_spent", [](const RetryBudget& budget, double deadline) { return budget.is_spent(seconds(deadline)); },
          py::arg("deadline"), "True once nothing is left: what fails now is not tried again.")
      .def(
          "answered",
          [](RetryBudget& budget, double began, bool has_failed) {
            const RetryBudget::Clock::time_point then(seconds(began));  // time.monotonic() is the same clock
            budget.answered(then, has_failed, RetryBudget::Clock::now());
          },
          py::arg("began"), py::arg("has_failed"), "A request that began then has a good answer.")
      .def(
          "give_up",
          [](RetryBudget& budget, int number, const std::string& message, const std::string& path) {
            budget.give_up(std::make_exception_ptr(Error(ErrorKind::IoError, message, number, path)));
          },
          py::arg("number"), py::arg("message"), py::arg("path"), "A request was given up.")
      .def(
          "check",
          [](const RetryBudget& budget) {
            if (const std::exception_ptr failure = budget.failure()) std::rethrow_exception(failure);
          },
          "Raises the error of the request that was given up.");
  py::class_<OperationScope>(module, "Operation", "Requests of the thread inside are of one operation.")
      .def(py::init([](const std::optional<RetryBudget*>& budget, bool is_apart) {
             return std::make_unique<OperationScope>(budget.value_or(nullptr), is_apart);
           }),
           py::keep_alive<1, 2>(), py::arg("budget") = py::none(), py::kw_only(), py::arg("is_apart") = false)
      .def("__enter__", [](OperationScope& scope) { scope.inside.emplace(scope.budget, scope.is_apart); })
      .def("__exit__", [](OperationScope& scope, const py::object& /*kind*/, const py::object& /*error*/,
                          const py::object& /*at*/) { scope.inside.reset(); });
}

}  // namespace

void register_stores(py::module_& module) {
  register_retry_budget(module);
  py::class_<ByteStore, std::shared_ptr<ByteStore>>(module, "Store", "Where files lie that are not this machine's.")
      .def(
          "size", [](ByteStore& store, const std::string& path) { return store.size(path, Links::Follow); },
          RunsUnlocked(), py::arg("path"), "Bytes of the file.")
      .def("read", &read_range, py::arg("path"), py::arg("offset"), py::arg("size"),
           "So many bytes of the file. Raises CorruptionError if it ends before.")
      .def("list", &ByteStore::list, RunsUnlocked(), py::arg("path"), "Names in the folder, folders with a slash.");
  py::class_<SignedAddresses, std::shared_ptr<SignedAddresses>>(module, "SignedAddresses", "See its header.",
                                                                py::dynamic_attr())
      .def(py::init(&SignedAddresses::make), py::kw_only(), py::arg("credentials"))
      .def(
          "take",
          [](SignedAddresses& addresses, std::size_t most, double patience) {
            return addresses.take(most, seconds(patience));
          },
          RunsUnlocked(), py::arg("most"), py::arg("patience"), "Paths that are to be signed.")
      .def(
          "give",
          [](SignedAddresses& addresses, const std::vector<std::pair<std::string, std::string>>& signed_addresses,
             double lifetime) { addresses.give(signed_addresses, seconds(lifetime)); },
          RunsUnlocked(), py::arg("addresses"), py::arg("lifetime"), "(path, address) of each, good for some seconds.")
      .def(
          "refuse",
          [](SignedAddresses& addresses, const std::vector<std::string>& paths, const std::string& message) {
            addresses.refuse(paths, Error(ErrorKind::IoError, message));
          },
          RunsUnlocked(), py::arg("paths"), py::arg("message"), "They cannot be signed.")
      .def("stop", &SignedAddresses::stop, RunsUnlocked())
      .def_property_readonly("is_stopped", &SignedAddresses::is_stopped);
  py::class_<HttpStore, ByteStore, std::shared_ptr<HttpStore>>(module, "HttpStore", "Files of a server of HTTP.")
      .def(
          py::init([](const std::string& server, std::vector<std::string> headers, std::string ca_file,
                      std::size_t connections, double deadline, bool check_etag, const std::vector<HiddenTuple>& hidden,
                      const std::optional<std::shared_ptr<SignedAddresses>>& signed_addresses) {
            std::shared_ptr<Addresses> addresses;
            if (signed_addresses) {
              addresses = *signed_addresses;
            } else {
              addresses = addresses_of(hidden, !headers.empty());
            }
            auto options =
                options_of(server, std::move(headers), std::move(ca_file), connections, deadline, check_etag);
            return std::make_shared<HttpStore>(std::move(options), std::move(addresses));
          }),
          py::kw_only(), py::arg("server"), py::arg("headers"), py::arg("ca_file"), py::arg("connections"),
          py::arg("deadline"), py::arg("check_etag"), py::arg("hidden"), py::arg("signed_addresses"),
          "server: an address of it, whose requests this process counts together with those of other stores\n"
          "hidden: (address as it is shown, userinfo, query) where no SignedAddresses are given");
  module.def(
      "parse_address",
      [](const std::string& url) {
        const Address address = parse_address(url);
        return py::make_tuple(address.shown, address.userinfo, address.query);
      },
      py::arg("url"), "(what may be shown, userinfo, query)");
  module.def("shown_address", &shown_address, py::arg("url"), "An address without its userinfo and query.");
  module.def("curl_refusal", &curl_refusal, RunsUnlocked(), "Why nothing is read over HTTP here; empty: it is.");
}

}  // namespace penstock::bindings
