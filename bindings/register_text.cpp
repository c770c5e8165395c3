// Documents of text for Python: blocks of bytes come in, arrays go out. Which documents, and what becomes of refused
// ones, is the business of penstock._from.text.
#include "bindings/gil.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "text/digested.h"
#include "text/json_lines.h"
#include "text/lines.h"
#include "text/rows.h"
#include "text/unseen.h"
#include "text/wrap_ids.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using U64Array = py::array_t<std::uint64_t, py::array::c_style>;
using U8Array = py::array_t<std::uint8_t, py::array::c_style>;

// The memory of a bytes-like object, for as long as it lives. Made and dropped with the GIL.
class BytesLike {
 public:
  explicit BytesLike(const py::buffer& object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
  }
  ~BytesLike() { PyBuffer_Release(&view_); }
  BytesLike(const BytesLike&) = delete;
  BytesLike& operator=(const BytesLike&) = delete;

  [[nodiscard]] std::string_view bytes() const noexcept {
    return {static_cast<const char*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

template <typename T>
std::span<const T> span_of(const py::array_t<T, py::array::c_style>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

template <typename T>
std::span<T> room_of(py::array_t<T, py::array::c_style>& array) {
  return {array.mutable_data(), static_cast<std::size_t>(array.size())};
}

// An array over the vector's memory.
template <typename T>
py::array_t<T, py::array::c_style> array_of(std::vector<T> values) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  const py::capsule owner(kept.get(), [](void* held) { delete static_cast<std::vector<T>*>(held); });
  const std::vector<T>& held = *kept.release();
  return py::array_t<T, py::array::c_style>(static_cast<py::ssize_t>(held.size()), held.data(), owner);
}

std::tuple<U64Array, U64Array, U64Array, std::uint64_t> split_lines(const py::buffer& block, bool is_json,
                                                                    bool strip_mark) {
  const BytesLike held(block);
  text::Lines found;
  {
    const Unlocked released;
    found = text::split_lines(held.bytes(), is_json, strip_mark);
  }
  return {array_of(std::move(found.begins)), array_of(std::move(found.ends)), array_of(std::move(found.numbers)),
          found.lines};
}

// (bytes, ends)
using KnownTuple = std::pair<py::buffer, U64Array>;

U8Array digested(const py::buffer& block, const U64Array& begins, const U64Array& ends,
                 const std::optional<KnownTuple>& known) {
  const BytesLike held(block);
  std::optional<BytesLike> held_known;
  text::Pieces said;
  if (known) {
    held_known.emplace(known->first);
    said = {held_known->bytes(), {}, span_of(known->second)};
    if (said.ends.size() != static_cast<std::size_t>(ends.size())) {
      raise(ErrorKind::InvalidArgument, "metadata of {} documents, there are {}", said.ends.size(), ends.size());
    }
  }
  const text::Pieces documents{held.bytes(), span_of(begins), span_of(ends)};
  std::uint64_t bytes = 0;
  {
    const Unlocked released;
    bytes = text::digested_bytes(documents, said);
  }
  U8Array out(static_cast<py::ssize_t>(bytes));
  auto* const to = reinterpret_cast<char*>(out.mutable_data());
  const Unlocked released;
  text::write_digested(documents, said, to);
  return out;
}

text::EntryCodec parse_codec(const std::string& name) {
  if (name.empty()) return text::EntryCodec::None;
  if (name == "json") return text::EntryCodec::Json;
  if (name == "msgpack") return text::EntryCodec::Msgpack;
  if (name == "raw") return text::EntryCodec::Raw;
  raise(ErrorKind::InvalidArgument, "codec \"{}\": must be \"json\", \"msgpack\", \"raw\" or \"\"", name);
}

// A column's name. One from a command line may have lone surrogates: it is the name of no column then.
std::string name_of(const py::str& name) {
  return py::reinterpret_borrow<py::bytes>(
      from_python([&] { return PyUnicode_AsEncodedString(name.ptr(), "utf-8", "surrogatepass"); }));
}

text::LineColumns line_columns(const py::str& column, bool ids, const std::optional<std::vector<py::str>>& metadata,
                               const std::string& codec) {
  text::LineColumns columns{name_of(column), ids, std::nullopt, parse_codec(codec)};
  if (!metadata) return columns;
  columns.metadata.emplace();
  for (const py::str& name : *metadata) columns.metadata->push_back(name_of(name));
  return columns;
}

// What parse() gives, as arrays.
struct ParsedArrays {
  py::array payload;
  U64Array ends;
  U8Array entries;
  U64Array entry_ends;
  py::array_t<std::uint32_t, py::array::c_style> refused;
};

// One thread at a time, although the GIL is released: each worker of penstock._from.text has its own.
class PythonJsonLines {
 public:
  PythonJsonLines(const py::str& column, bool ids, const std::optional<std::vector<py::str>>& metadata,
                  const std::string& codec)
      : is_ids_(ids), parser_(line_columns(column, ids, metadata, codec)) {}

  ParsedArrays parse(const py::buffer& block, const U64Array& begins, const U64Array& ends) {
    const BytesLike held(block);
    const text::Pieces lines{held.bytes(), span_of(begins), span_of(ends)};
    text::ParsedLines found;
    {
      const Unlocked released;
      found = parser_.parse(lines);
    }
    return {is_ids_ ? py::array(array_of(std::move(found.ids))) : py::array(array_of(std::move(found.texts))),
            array_of(std::move(found.ends)), array_of(std::move(found.entries)), array_of(std::move(found.entry_ends)),
            array_of(std::move(found.refused))};
  }

 private:
  const bool is_ids_;
  text::JsonLines parser_;
};

using NarrowIds = py::array_t<std::uint32_t, py::array::c_style>;
using WideIds = py::array_t<std::int64_t, py::array::c_style>;

// `ids` and `ends` as text::wrap_ids() takes them: ends of uint64, or Arrow's offsets of int64, one more.
text::IdDocuments id_documents(const py::array& ids, const py::array& ends) {
  text::IdDocuments documents;
  if (py::isinstance<NarrowIds>(ids)) {
    documents.ids = span_of(py::reinterpret_borrow<NarrowIds>(ids));
  } else if (py::isinstance<WideIds>(ids)) {
    documents.ids = span_of(py::reinterpret_borrow<WideIds>(ids));
  } else {
    throw py::type_error("ids: an array of uint32 or int64 in one piece");
  }
  if (py::isinstance<U64Array>(ends)) {
    documents.ends = span_of(py::reinterpret_borrow<U64Array>(ends));
  } else if (py::isinstance<WideIds>(ends) && ends.size() > 0) {
    // A negative offset is one far beyond the ids.
    const auto* const offsets = static_cast<const std::uint64_t*>(ends.data());
    documents.first = offsets[0];
    documents.ends = {offsets + 1, static_cast<std::size_t>(ends.size() - 1)};
  } else {
    throw py::type_error("ends: an array of uint64, or of int64 with the first one's beginning before them");
  }
  return documents;
}

template <typename Out>
std::tuple<U64Array, py::array, std::int64_t> wrap_into(const text::IdDocuments& documents,
                                                        const text::IdWrapping& wrapping, std::uint64_t size) {
  U64Array lengths(static_cast<py::ssize_t>(documents.ends.size()));
  py::array_t<Out, py::array::c_style> out(static_cast<py::ssize_t>(size));
  const std::span<std::uint64_t> to_lengths = room_of(lengths);
  const std::span<Out> to = room_of(out);
  std::int64_t wrong = -1;
  {
    const Unlocked released;
    wrong = text::wrap_ids(documents, wrapping, to, to_lengths);
  }
  return {std::move(lengths), std::move(out), wrong};
}

std::tuple<U64Array, py::array, std::int64_t> wrap_ids(const py::array& ids, const py::array& ends,
                                                       const std::vector<std::uint32_t>& prepend,
                                                       const std::vector<std::uint32_t>& append, std::uint64_t itemsize,
                                                       std::uint64_t last) {
  const text::IdDocuments documents = id_documents(ids, ends);
  const text::IdWrapping wrapping{prepend, append, last};
  const std::uint64_t size = text::wrapped_size(documents, wrapping);
  switch (itemsize) {
    case 1: return wrap_into<std::uint8_t>(documents, wrapping, size);
    case 2: return wrap_into<std::uint16_t>(documents, wrapping, size);
    case 4: return wrap_into<std::uint32_t>(documents, wrapping, size);
    default: raise(ErrorKind::InvalidArgument, "itemsize {}: must be 1, 2 or 4", itemsize);
  }
}

// One thread at a time, as PythonJsonLines.
class PythonUnseen {
 public:
  explicit PythonUnseen(const std::vector<py::bytes>& tokens) : unseen_(strings_of(tokens)) {}

  U64Array scan(const py::buffer& utf8, const U64Array& ends) {
    const BytesLike held(utf8);
    const std::span<const std::uint64_t> document_ends = span_of(ends);
    std::vector<std::uint64_t> found;
    {
      const Unlocked released;
      found = unseen_.scan(held.bytes(), document_ends);
    }
    return array_of(std::move(found));
  }

 private:
  static std::vector<std::string> strings_of(const std::vector<py::bytes>& tokens) {
    return {tokens.begin(), tokens.end()};
  }

  text::Unseen unseen_;
};

// (bytes, ends)
using EntriesTuple = std::pair<U8Array, U64Array>;

EntriesTuple arrays_of(text::Entries entries) {
  return {array_of(std::move(entries.bytes)), array_of(std::move(entries.ends))};
}

EntriesTuple fill(const py::bytes& prefix, const U64Array& numbers, const py::bytes& suffix) {
  const std::string_view before = prefix;
  const std::string_view behind = suffix;
  const std::span<const std::uint64_t> given = span_of(numbers);
  text::Entries found;
  {
    const Unlocked released;
    found = text::fill(before, given, behind);
  }
  return arrays_of(std::move(found));
}

text::ArrowKind parse_arrow_kind(const std::string& name) {
  if (name == "utf8") return text::ArrowKind::Utf8;
  if (name == "large_utf8") return text::ArrowKind::LargeUtf8;
  if (name == "int") return text::ArrowKind::Int;
  if (name == "uint") return text::ArrowKind::Uint;
  if (name == "float") return text::ArrowKind::Float;
  if (name == "bool") return text::ArrowKind::Bool;
  raise(ErrorKind::InvalidArgument, "kind \"{}\" of a column: none that there is", name);
}

// (name, kind, itemsize, validity, offsets, data, offset); a buffer that is empty may be None.
using ArrowTuple = std::tuple<std::string, std::string, std::uint64_t, std::optional<py::buffer>,
                              std::optional<py::buffer>, std::optional<py::buffer>, std::uint64_t>;

std::optional<std::pair<EntriesTuple, EntriesTuple>> rows_json(const std::vector<ArrowTuple>& columns,
                                                               std::uint64_t rows) {
  std::vector<std::unique_ptr<BytesLike>> held;
  const auto bytes_of = [&held](const py::buffer& object) {
    held.push_back(std::make_unique<BytesLike>(object));
    return held.back()->bytes();
  };
  std::vector<text::ArrowColumn> given;
  for (const auto& [name, kind, itemsize, validity, offsets, data, offset] : columns) {
    text::ArrowColumn& column = given.emplace_back();
    column.name = name;
    column.kind = parse_arrow_kind(kind);
    column.itemsize = itemsize;
    if (validity) column.validity = bytes_of(*validity);
    if (offsets) column.offsets = bytes_of(*offsets);
    if (data) column.data = bytes_of(*data);
    column.offset = offset;
  }
  std::optional<text::JsonRows> found;
  {
    const Unlocked released;
    found = text::rows_json(given, rows);
  }
  if (!found) return std::nullopt;
  return std::pair(arrays_of(std::move(found->sorted)), arrays_of(std::move(found->entries)));
}

}  // namespace

void register_text(py::module_& module) {
  module.def("split_lines", &split_lines, py::arg("block"), py::arg("is_json"), py::arg("strip_mark"),
             "(begins, ends, line numbers) of documents, uint64, and how many lines there are; see text/lines.h.");
  module.def("digested", &digested, py::arg("block"), py::arg("begins").noconvert(), py::arg("ends").noconvert(),
             py::arg("known"), "Bytes, uint8, that RawDocument.digested() gives for each document, together.");
  py::class_<ParsedArrays>(module, "ParsedLines", "What JsonLines.parse() gives; see text/json_lines.h.")
      .def_readonly("payload", &ParsedArrays::payload, "uint8: texts in UTF-8; int64: ids.")
      .def_readonly("ends", &ParsedArrays::ends, "uint64: where each document's payload ends.")
      .def_readonly("entries", &ParsedArrays::entries, "uint8.")
      .def_readonly("entry_ends", &ParsedArrays::entry_ends, "uint64; empty where there is no metadata.")
      .def_readonly("refused", &ParsedArrays::refused, "uint32: lines that Python has to read.");
  py::class_<PythonJsonLines>(module, "JsonLines", "Reads JSON lines as penstock._from.text.extract does.")
      .def(py::init<const py::str&, bool, const std::optional<std::vector<py::str>>&, const std::string&>(),
           py::arg("column"), py::arg("ids"), py::arg("metadata"), py::arg("codec"))
      .def("parse", &PythonJsonLines::parse, py::arg("block"), py::arg("begins").noconvert(),
           py::arg("ends").noconvert());
  py::class_<PythonUnseen>(module, "Unseen", "Finds characters and tokens that no text before had; see text/unseen.h.")
      .def(py::init<const std::vector<py::bytes>&>(), py::arg("tokens"))
      .def("scan", &PythonUnseen::scan, py::arg("utf8"), py::arg("ends").noconvert(),
           "Places, uint64, at which one begins that was not seen before.");
  module.def("fill", &fill, py::arg("prefix"), py::arg("numbers").noconvert(), py::arg("suffix"),
             "(bytes, ends), uint8 and uint64: `prefix`, a number in decimals and `suffix` for each number.");
  module.def("rows_json", &rows_json, py::arg("columns"), py::arg("rows"),
             "(bytes, ends) of rows of Arrow as sorted JSON of ASCII, and as compact JSON; None: Python has to do it.");
  module.def("wrap_ids", &wrap_ids, py::arg("ids"), py::arg("ends"), py::arg("prepend"), py::arg("append"),
             py::arg("itemsize"), py::arg("last"),
             "(lengths, ids, index of the first id that is negative or above `last`, else -1); see text/wrap_ids.h.");
}

}  // namespace penstock::bindings
