// Orders of a user's own for Python: an array, a C function, or calls that a thread of Python's takes and answers.
#include "bindings/asked_blocks.h"
#include "bindings/function_failed.h"
#include "bindings/gil.h"
#include "bindings/integers.h"
#include "bindings/lent_memory.h"
#include "bindings/register.h"
#include "bindings/watched_file.h"
#include "core/base/error.h"
#include "shuffle/asked.h"
#include "shuffle/listed.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using LentPtr = std::shared_ptr<LentObjects>;

// --- arrays

/// Who keeps the array says it: the list has no owner.
shuffle::IndexList list_of(const py::array& array) {
  const auto width = static_cast<py::ssize_t>(array.itemsize());
  const bool is_wide = width == sizeof(std::uint64_t);
  if (array.ndim() != 1 || array.dtype().kind() != 'u' || (!is_wide && width != sizeof(std::uint32_t)) ||
      array.strides(0) % width != 0 || reinterpret_cast<std::uintptr_t>(array.data()) % width != 0) {
    raise(ErrorKind::InvalidArgument, "indices: an aligned array [n] of uint32 or uint64 is wanted");
  }
  shuffle::IndexList list;
  list.data = array.data();
  list.is_wide = is_wide;
  list.step = array.strides(0) / width;
  list.size = static_cast<std::uint64_t>(array.size());
  return list;
}

/// (digest of the part [16], the largest of its indices, where that stands).
py::tuple summarize_indices(const py::array& array, std::uint64_t begin, std::uint64_t end) {
  const shuffle::IndexList list = list_of(array);
  if (begin >= end || end > list.size) {
    raise(ErrorKind::InvalidArgument, "indices {} to {} of {}", begin, end, list.size);
  }
  shuffle::IndexSummary found;
  {
    const Unlocked released;
    found = shuffle::summarize(list, begin, end);
  }
  return py::make_tuple(py::bytes(reinterpret_cast<const char*>(found.digest.data()), found.digest.size()),
                        found.largest, found.largest_at);
}

std::string digest_of_parts(std::uint64_t size, const std::vector<py::bytes>& parts) {
  std::vector<DigestBytes> digests(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto text = static_cast<std::string_view>(parts[i]);
    if (text.size() != sizeof(DigestBytes)) raise(ErrorKind::InvalidArgument, "a digest of {} bytes", text.size());
    std::memcpy(digests[i].data(), text.data(), text.size());
  }
  return hex_of(shuffle::digest_of_parts(size, digests));
}

/// `fd` and `path` of the file that the array is mapped from, if it is.
std::shared_ptr<shuffle::Listed> make_listed(const LentPtr& lent, const py::array& array, std::string digest,
                                             const py::object& fetch, const py::object& lanes, std::optional<int> fd,
                                             const std::string& path) {
  lent->drain();
  shuffle::IndexList list = list_of(array);
  list.owner = lent->hold(array);
  if (fd) {
    list.check_same = [file = std::make_shared<const WatchedFile>(*fd, path)] { file->check_same(); };
  }
  return std::make_shared<shuffle::Listed>(std::move(list), std::move(digest), to_u64(fetch, "fetch"),
                                           to_u64(lanes, "lanes"));
}

// --- functions

/// int32_t order(uint64_t epoch, uint64_t first, uint64_t count, uint64_t *indices): 0, or what failed.
using CFunction = std::int32_t (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t*);

std::shared_ptr<AskedBlocks> make_c_blocks(const LentPtr& lent, std::string words, const py::object& length,
                                           const py::object& observations, std::uintptr_t address,
                                           const py::object& keeps) {
  lent->drain();
  const auto function = reinterpret_cast<CFunction>(address);  // NOLINT(performance-no-int-to-ptr): a user gave it
  if (function == nullptr) raise(ErrorKind::InvalidArgument, "{}: its function is a null pointer", words);
  AskedFunction asked{std::move(words), to_u64(length, "length"), to_u64(observations, "observations")};
  return AskedBlocks::make(asked, [function, words = asked.words, owner = lent->hold(keeps)](
                                      std::uint32_t epoch, std::uint64_t first, std::span<std::uint64_t> out) {
    const std::int32_t status = function(epoch, first, out.size(), out.data());
    if (status == 0) return;
    raise(ErrorKind::InvalidArgument, "{}: epoch {}, positions {} to {}: its function returned {}: 0 is wanted", words,
          with_commas(epoch), with_commas(first), with_commas(first + out.size() - 1), status);
  });
}

/// Ends the thread that answers once nobody asks.
class StopsBlocks {
 public:
  explicit StopsBlocks(std::shared_ptr<AskedBlocks> blocks) : blocks_(std::move(blocks)) {}
  ~StopsBlocks() { blocks_->stop(); }
  StopsBlocks(const StopsBlocks&) = delete;
  StopsBlocks& operator=(const StopsBlocks&) = delete;
  [[nodiscard]] AskedBlocks& get() const noexcept { return *blocks_; }

 private:
  std::shared_ptr<AskedBlocks> blocks_;
};

std::shared_ptr<shuffle::Asked> make_asked(std::shared_ptr<AskedBlocks> blocks, std::string name, std::string version,
                                           const py::object& length, const py::object& fetch, const py::object& lanes,
                                           bool waits) {
  shuffle::Asked::Spec spec{std::move(name),        std::move(version),     to_u64(length, "length"),
                            to_u64(fetch, "fetch"), to_u64(lanes, "lanes"), waits};
  spec.note_end = [blocks](std::uint64_t epochs) { blocks->note_end(epochs); };
  auto ask = [held = std::make_shared<const StopsBlocks>(std::move(blocks))](std::uint32_t epoch,
                                                                             std::uint64_t number) {
    AskedBlocks& blocks = held->get();
    if (shuffle::IndexBlock kept = blocks.find(epoch, number)) return kept;
    std::optional<Unlocked> released;  // a thread of Python's is to answer
    if (has_gil()) released.emplace();
    return blocks.get(epoch, number, &look_for_signals);
  };
  return std::make_shared<shuffle::Asked>(std::move(spec), std::move(ask));
}

/// A call that is answered once, also where its thread fails.
class TakenBlock {
 public:
  TakenBlock(std::shared_ptr<AskedBlocks> blocks, AskedBlocks::Call call, LentPtr lent)
      : blocks_(std::move(blocks)), call_(std::move(call)), lent_(std::move(lent)) {}
  ~TakenBlock() {
    blocks_->fail(call_, std::make_exception_ptr(Error(ErrorKind::InvalidArgument,
                                                       blocks_->words_of(*call_) + ": it was left without an answer")));
  }
  TakenBlock(const TakenBlock&) = delete;
  TakenBlock& operator=(const TakenBlock&) = delete;

  [[nodiscard]] const AskedBlocks::Request& call() const noexcept { return *call_; }

  void give(const py::array_t<std::uint64_t, py::array::c_style>& indices) {
    const std::span<const std::uint64_t> values(indices.data(), static_cast<std::size_t>(indices.size()));
    const Unlocked released;
    blocks_->give(call_, std::vector<std::uint64_t>(values.begin(), values.end()));
  }
  void fail(const std::string& what, const py::object& raised) {
    const std::string message = blocks_->words_of(*call_) + ": " + what;
    const std::exception_ptr error = raised.is_none()
                                         ? std::make_exception_ptr(Error(ErrorKind::InvalidArgument, message))
                                         : std::make_exception_ptr(FunctionFailed(message, lent_->hold(raised)));
    const Unlocked released;
    blocks_->fail(call_, error);
  }

 private:
  const std::shared_ptr<AskedBlocks> blocks_;
  const AskedBlocks::Call call_;
  const LentPtr lent_;
};

std::unique_ptr<TakenBlock> take_block(const LentPtr& lent, const std::shared_ptr<AskedBlocks>& blocks) {
  lent->drain();
  AskedBlocks::Call call;
  {
    const Unlocked released;
    call = blocks->take();
  }
  return call ? std::make_unique<TakenBlock>(blocks, std::move(call), lent) : nullptr;
}

void register_asked(py::module_& module, const LentPtr& lent) {
  py::class_<TakenBlock>(module, "OrderCall", "Positions that a thread is to ask a function of, and its answer.")
      .def_property_readonly("epoch", [](const TakenBlock& taken) { return taken.call().epoch; })
      .def_property_readonly("first", [](const TakenBlock& taken) { return taken.call().first; })
      .def_property_readonly("count", [](const TakenBlock& taken) { return taken.call().count; })
      .def("give", &TakenBlock::give, py::arg("indices"), "Of each position: uint64.")
      .def("fail", &TakenBlock::fail, py::arg("what"), py::arg("raised"), "The exception, or None.");
  py::class_<AskedBlocks, std::shared_ptr<AskedBlocks>>(module, "OrderBlocks", "See bindings/asked_blocks.h.")
      .def(py::init([](std::string words, const py::object& length, const py::object& observations) {
             return AskedBlocks::make(
                 {std::move(words), to_u64(length, "length"), to_u64(observations, "observations")});
           }),
           py::arg("words"), py::arg("length"), py::arg("observations"))
      .def_static(
          "of_c",
          [lent](std::string words, const py::object& length, const py::object& observations, std::uintptr_t address,
                 const py::object& keeps) {
            return make_c_blocks(lent, std::move(words), length, observations, address, keeps);
          },
          py::arg("words"), py::arg("length"), py::arg("observations"), py::arg("address"), py::arg("keeps"),
          "Of a C function at an address, which lives as long as `keeps`.")
      .def(
          "take", [lent](const std::shared_ptr<AskedBlocks>& blocks) { return take_block(lent, blocks); },
          "What to ask next; None: the thread is to end.");
  py::class_<shuffle::Asked, Order, std::shared_ptr<shuffle::Asked>>(module, "AskedOrder")
      .def(py::init(&make_asked), py::arg("blocks"), py::arg("name"), py::arg("version"), py::arg("length"),
           py::arg("fetch"), py::arg("lanes"), py::arg("waits"))
      .def_property_readonly_static("block", [](const py::object&) { return shuffle::Asked::kBlock; });
}

}  // namespace

void register_custom_orders(py::module_& module) {
  const auto lent = std::make_shared<LentObjects>();
  module.def("summarize_indices", &summarize_indices, py::arg("indices"), py::arg("begin"), py::arg("end"),
             "(digest of the part, the largest of its indices, where that stands); without the GIL.");
  module.def("digest_of_parts", &digest_of_parts, py::arg("size"), py::arg("parts"),
             "The digest, in hex, of so many indices, by those of their parts.");
  module.attr("INDEX_PART") = shuffle::IndexList::kPart;
  py::class_<shuffle::Listed, Order, std::shared_ptr<shuffle::Listed>>(module, "ListedOrder")
      .def(py::init([lent](const py::array& indices, std::string digest, const py::object& fetch,
                           const py::object& lanes, std::optional<int> fd, const std::string& path) {
             return make_listed(lent, indices, std::move(digest), fetch, lanes, fd, path);
           }),
           py::arg("indices"), py::arg("digest"), py::arg("fetch"), py::arg("lanes"), py::arg("fd") = py::none(),
           py::arg("path") = "");
  register_asked(module, lent);
}

}  // namespace penstock::bindings
