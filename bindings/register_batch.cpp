// Batch and its spans: memory of a ready batch as arrays that keep it alive, without a copy.
#include "bindings/column_specs.h"
#include "bindings/gil.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/batch/batch.h"
#include "core/batch/late_array.h"
#include "core/batch/span_values.h"
#include "core/columns/leaf_column.h"
#include "core/columns/value_column.h"
#include "core/engine/read_rows.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using BatchPtr = std::shared_ptr<Batch>;

using Extents = std::vector<py::ssize_t>;

// The records as read: [rows, length], or [records] of ragged rows.
struct AsRead {
  Extents shape;
  Extents strides;  // bytes
  const std::byte* first;
};

// Throws InvalidArgument where rows have no records of one type.
AsRead as_read(const Batch& batch) {
  const BatchFormat& format = *batch.format;
  if (!batch.has_records()) {
    raise(ErrorKind::InvalidArgument, "this batch has no records: {}; ask for its fields by name",
          format.source->info().fields_apart ? "its source keeps fields apart"
                                             : "its rows are of sources whose records differ");
  }
  const auto size = static_cast<py::ssize_t>(format.stored_record_bytes);
  const std::byte* first = batch.slab.data() + batch.records_at;
  if (format.shape.ragged) return {{static_cast<py::ssize_t>(batch.record_count())}, {size}, first};
  return {{static_cast<py::ssize_t>(batch.plan.rows), static_cast<py::ssize_t>(format.shape.length)},
          {static_cast<py::ssize_t>(format.row_bytes), size},
          first};
}

Extents extents(const ArrayShape& shape) {
  return {shape.dims.begin(), shape.dims.end()};
}

// Arrays over the memory of the native batch `self` have it as their base, which keeps it alive.

// Throws InvalidArgument where `dtype` is not as large as a stored record, whose it is.
py::array records(const py::object& self, const py::dtype& dtype) {
  const Batch& batch = self.cast<const Batch&>();
  AsRead rows = as_read(batch);
  if (static_cast<std::uint64_t>(dtype.itemsize()) != batch.format->stored_record_bytes) {
    raise(ErrorKind::InvalidArgument, "records of {} bytes, and were asked for as {}",
          batch.format->stored_record_bytes, std::string(py::str(dtype)));
  }
  return {dtype, std::move(rows.shape), std::move(rows.strides), rows.first, self};
}

// Whether NumPy's `dtype` is the type as batches hold it, in little-endian bytes.
bool is_type(const py::dtype& dtype, ScalarType type) {
  return dtype.kind() == type.kind && static_cast<std::uint64_t>(dtype.itemsize()) == type.bytes &&
         dtype.byteorder() != '>';
}

// A leaf of the records as read, with the leaf's own axes behind theirs. None where there are no records to look into,
// and where the leaf is not of `dtype`: a mixture's batch may be of one source alone, whose records only it tells.
py::object field(const py::object& self, const std::string& name, const py::dtype& dtype) {
  const Batch& batch = self.cast<const Batch&>();
  if (!batch.has_records()) return py::none();
  const Leaf& leaf = find_leaf(batch.format->source->info(), name);
  if (!is_type(dtype, {leaf.kind, leaf.item_bytes})) return py::none();
  AsRead rows = as_read(batch);
  rows.shape.insert(rows.shape.end(), leaf.dims.begin(), leaf.dims.end());
  rows.strides.insert(rows.strides.end(), leaf.stride_bytes.begin(), leaf.stride_bytes.end());
  return py::array(dtype, std::move(rows.shape), std::move(rows.strides), rows.first + leaf.offset_bytes, self);
}

void check_type(const py::dtype& dtype, ScalarType type) {
  if (is_type(dtype, type)) return;
  raise(ErrorKind::InvalidArgument, "an array of this batch is {}, and was asked for as {}", type.name(),
        std::string(py::str(dtype)));
}

// Where array `part` of column i lies in the batch's memory: its first one, or one that was made beside it. Throws
// InvalidArgument where it is not of `dtype`.
std::pair<std::uint64_t, Extents> find_array(const Batch& batch, std::size_t i, std::size_t part,
                                             const py::dtype& dtype) {
  const PlacedArray& array = batch.arrays.at(i);
  if (part == 0) {
    check_type(dtype, array.shape.type);
    return {array.at, extents(array.shape)};
  }
  const FurtherArray& further = array.shape.further.at(part - 1);
  check_type(dtype, further.type);
  return {array.at + further.at, Extents(further.dims.begin(), further.dims.end())};
}

// Array `part` of column i as it lies in the batch. None where the memory is lent: then an array is a slice of what its
// lender has.
py::object column(const py::object& self, std::size_t i, std::size_t part, const py::dtype& dtype) {
  const Batch& batch = self.cast<const Batch&>();
  if (batch.slab.lender()) return py::none();
  auto [at, shape] = find_array(batch, i, part, dtype);
  return py::array(dtype, std::move(shape), {}, batch.slab.data() + at, self);
}

// (byte of the batch's memory, dims) of array `part` of column i.
py::tuple place(const Batch& batch, std::size_t i, std::size_t part, const py::dtype& dtype) {
  const auto [at, shape] = find_array(batch, i, part, dtype);
  return py::make_tuple(at, py::tuple(py::cast(shape)));
}

// A value of each row; -1 where padded.
template <typename Value>
py::array_t<std::int64_t> by_row(const Batch& batch, const Value& value) {
  py::array_t<std::int64_t> out(static_cast<py::ssize_t>(batch.plan.rows));
  std::int64_t* const at = out.mutable_data();
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) at[i] = i < batch.plan.valid ? value(i) : -1;
  return out;
}

py::array_t<std::int64_t> indices(const Batch& batch) {
  return by_row(batch, [&](std::uint64_t i) { return static_cast<std::int64_t>(batch.picks[i].index); });
}

py::array_t<std::int64_t> epochs(const Batch& batch) {
  return by_row(batch, [&](std::uint64_t i) { return static_cast<std::int64_t>(batch.picks[i].epoch); });
}

py::array_t<std::int64_t> sources(const Batch& batch) {
  return by_row(batch, [&](std::uint64_t i) { return static_cast<std::int64_t>(batch.picks[i].source); });
}

py::array_t<std::int64_t> first_records(const Batch& batch) {
  return by_row(batch, [&](std::uint64_t i) {
    return batch.row_format(i).source->first_record(batch.rows[i], batch.picks[i].index);
  });
}

py::array_t<std::int64_t> positions(const Batch& batch) {
  return by_row(batch, [&](std::uint64_t i) {
    return batch.positions.empty() ? -1 : static_cast<std::int64_t>(batch.positions[i]);
  });
}

py::array_t<std::int64_t> starts(const Batch& batch) {
  py::array_t<std::int64_t> out(static_cast<py::ssize_t>(batch.starts.size()));
  auto at = out.mutable_unchecked<1>();
  for (std::size_t i = 0; i < batch.starts.size(); ++i) {
    at(static_cast<py::ssize_t>(i)) = static_cast<std::int64_t>(batch.starts[i]);
  }
  return out;
}

// A new array whose values `fill` writes, in C order.
template <typename T, typename Fill>
py::array_t<T> filled(std::vector<py::ssize_t> shape, const Fill& fill) {
  py::array_t<T> array(std::move(shape));
  fill(array.mutable_data());
  return array;
}

// All spans of a batch, by row and start.
class SpanList {
 public:
  explicit SpanList(BatchPtr batch) : batch_(std::move(batch)), firsts_(batch_->plan.valid + 1) {
    for (std::uint64_t row = 0; row < batch_->plan.valid; ++row) {
      firsts_[row + 1] = firsts_[row] + batch_->rows[row].spans.size();
    }
  }

  [[nodiscard]] std::size_t size() const { return firsts_.back(); }

  // [first, stop) of a row's spans; none for a row that is padding or not there.
  [[nodiscard]] std::pair<std::size_t, std::size_t> of_row(std::int64_t row) const {
    if (row < 0 || static_cast<std::uint64_t>(row) >= batch_->plan.valid) return {0, 0};
    const auto at = static_cast<std::size_t>(row);
    return {firsts_[at], firsts_[at + 1]};
  }

  // (row, start, stop, begins, ends, offset or None, shard, entry, source)
  [[nodiscard]] py::tuple get(std::size_t i) const {
    const auto [row, span] = find(i);
    const py::object offset = span->offset < 0 ? py::object(py::none()) : py::object(py::int_(span->offset));
    return py::make_tuple(row, span->start, span->stop, span->begins, span->ends, offset, span->shard, span->entry,
                          batch_->picks[row].source);
  }

  // (rows, starts, stops, begins, ends, offsets, ids, source)
  [[nodiscard]] py::tuple arrays() const {
    const auto integers = [&](const auto& value) {
      return column<std::int64_t>(
          [&](std::uint64_t row, const Span& span) { return static_cast<std::int64_t>(value(row, span)); });
    };
    const auto ids = filled<std::int64_t>({static_cast<py::ssize_t>(size()), 2}, [&](std::int64_t* to) {
      each([&](std::uint64_t, const Span& span) {
        *to++ = span.shard;
        *to++ = static_cast<std::int64_t>(span.entry);
      });
    });
    return py::make_tuple(integers([](std::uint64_t row, const Span&) { return row; }),
                          integers([](std::uint64_t, const Span& span) { return span.start; }),
                          integers([](std::uint64_t, const Span& span) { return span.stop; }),
                          column<bool>([](std::uint64_t, const Span& span) { return span.begins; }),
                          column<bool>([](std::uint64_t, const Span& span) { return span.ends; }),
                          integers([](std::uint64_t, const Span& span) { return span.offset; }), ids,
                          integers([&](std::uint64_t row, const Span&) { return batch_->picks[row].source; }));
  }

  [[nodiscard]] py::bytes raw(std::size_t i) const {
    const Span& span = *find(i).second;
    return {reinterpret_cast<const char*>(span.raw), span.raw_bytes};
  }

  // The entry's bytes as a read-only array that keeps this list alive, and with it the batch.
  [[nodiscard]] static py::array view(const py::object& self, std::size_t i) {
    const Span& span = *self.cast<const SpanList&>().find(i).second;
    py::array_t<std::uint8_t> array(static_cast<py::ssize_t>(span.raw_bytes),
                                    reinterpret_cast<const std::uint8_t*>(span.raw), self);
    array.attr("flags").attr("writeable") = false;
    return array;
  }

 private:
  // Span i, and its row.
  [[nodiscard]] std::pair<std::uint64_t, const Span*> find(std::size_t i) const {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), i);
    const auto row = static_cast<std::size_t>(after - firsts_.begin()) - 1;
    return {row, &batch_->rows.at(row).spans.at(i - firsts_[row])};
  }

  template <typename Take>
  void each(const Take& take) const {
    for (std::uint64_t row = 0; row < batch_->plan.valid; ++row) {
      for (const Span& span : batch_->rows[row].spans) take(row, span);
    }
  }

  template <typename T, typename Value>
  [[nodiscard]] py::array_t<T> column(const Value& value) const {
    return filled<T>({static_cast<py::ssize_t>(size())},
                     [&](T* to) { each([&](std::uint64_t row, const Span& span) { *to++ = value(row, span); }); });
  }

  BatchPtr batch_;
  std::vector<std::size_t> firsts_;  // number of the first span of each valid row, then of all spans
};

using Uint64Array = py::array_t<std::uint64_t, py::array::c_style>;

py::array_t<std::int64_t> first_spans(const EntryNumbers& entries) {
  return filled<std::int64_t>({static_cast<py::ssize_t>(entries.first_span.size())}, [&](std::int64_t* to) {
    std::copy(entries.first_span.begin(), entries.first_span.end(), to);
  });
}

// `firsts` [entries + 1], `ranges` [n, 2].
void keep_targets(Batch& batch, std::size_t column, const EntryNumbers& entries, const Uint64Array& firsts,
                  const Uint64Array& ranges) {
  if (ranges.ndim() != 2 || ranges.shape(1) != 2) raise(ErrorKind::InvalidArgument, "ranges are no pairs");
  const auto* const pairs = reinterpret_cast<const DocumentRange*>(ranges.data());
  const std::span<const std::uint64_t> bounds(firsts.data(), static_cast<std::size_t>(firsts.size()));
  const auto count = static_cast<std::size_t>(ranges.shape(0));
  if (!std::is_sorted(bounds.begin(), bounds.end()) || (!bounds.empty() && bounds.back() > count)) {
    raise(ErrorKind::InvalidArgument, "ranges of entries beyond {} ranges", count);
  }
  const Unlocked released;
  keep_targets(batch, column, entries, bounds, {pairs, count});
}

void spread(Batch& batch, std::size_t column, const EntryNumbers& entries,
            const py::array_t<std::uint8_t, py::array::c_style>& values) {
  const auto bytes = std::as_bytes(std::span(values.data(), static_cast<std::size_t>(values.size())));
  const Unlocked released;
  spread_values(batch, column, entries, bytes);
}

// A field of all rows, cast densely after the fact. `dtype` is that of `type`.
py::array cast(const BatchPtr& batch, const FieldSpec& field, const py::dtype& dtype) {
  const LateArray late(*batch, field);
  py::array out(dtype, extents(late.shape()));
  auto* data = static_cast<std::byte*>(out.mutable_data());
  const Unlocked released;
  late.write(data);
  return out;
}

// Value c of each document, `dtype` one of them: [rows, dims…] where rows are documents, else [spans, dims…].
py::array values(const Batch& batch, std::size_t c, const py::dtype& dtype) {
  const SourceInfo& info = batch.format->source->info();
  const ValueType& type = info.values.at(c);
  check_type(dtype, type.type);
  const std::uint64_t columns = info.values.size();
  const bool by_row = info.shape.ragged;
  std::uint64_t documents = 0;
  for (std::uint64_t i = 0; i < batch.plan.valid; ++i) documents += batch.rows[i].values->documents;
  const std::uint64_t count = by_row ? batch.plan.rows : documents;
  Extents shape{static_cast<py::ssize_t>(count)};
  for (const std::uint64_t dim : type.dims) shape.push_back(static_cast<py::ssize_t>(dim));
  py::array out(dtype, shape);
  auto* to = static_cast<std::byte*>(out.mutable_data());
  const std::uint64_t bytes = type.bytes();
  const Unlocked released;
  for (std::uint64_t i = 0; i < batch.plan.valid; ++i) {
    const RowValues& of = *batch.rows[i].values;
    for (std::uint64_t d = 0; d < of.documents; ++d, to += bytes) std::memcpy(to, of.at[d * columns + c], bytes);
  }
  if (by_row) fill_value_padding(type, batch.plan.rows - batch.plan.valid, to);
  return out;
}

BatchPtr read(const std::shared_ptr<Source>& source, const py::array_t<std::uint64_t, py::array::c_style>& indices,
              const MakerList& made, unsigned parts, std::uint64_t most_bytes, const ComputedList& computed,
              const std::shared_ptr<LocalStore>& local) {
  const std::span<const std::uint64_t> wanted(indices.data(), static_cast<std::size_t>(indices.size()));
  const Unlocked released;
  auto formats = std::make_shared<BatchFormats>();
  formats->emplace_back(source, column_specs({}, computed, made, {}), static_cast<Parts>(parts));
  return read_rows(std::move(formats), wanted,
                   {read_local_through(local, local->reading_once(wanted.size())), most_bytes, look_for_signals});
}

using Int64Array = py::array_t<std::int64_t, py::array::c_style>;

// Where observation indices[i] of source number numbers[i] lies in epoch epochs[i].
BatchPtr locate(const std::vector<std::shared_ptr<Source>>& sources, const Int64Array& numbers,
                const Int64Array& indices, const Int64Array& epochs, unsigned parts, std::uint64_t most_bytes,
                const std::shared_ptr<LocalStore>& local) {
  const auto count = static_cast<std::size_t>(indices.size());
  std::vector<Pick> picks(count);
  for (std::size_t i = 0; i < count; ++i) {
    picks[i] = {static_cast<std::uint64_t>(indices.data()[i]), 0, static_cast<std::uint32_t>(numbers.data()[i]),
                static_cast<std::uint32_t>(epochs.data()[i])};
  }
  const Unlocked released;
  const std::vector<std::shared_ptr<const Source>> asked(sources.begin(), sources.end());
  return locate_rows(asked, std::move(picks), static_cast<Parts>(parts),
                     {read_local_through(local, local->reading_once(count)), most_bytes, look_for_signals});
}

using BatchClass = py::class_<Batch, BatchPtr>;

void register_spans(py::module_& module) {
  py::class_<SpanList>(module, "SpanList", "The spans of one batch, by row and start.")
      .def("__len__", &SpanList::size)
      .def("of_row", &SpanList::of_row, py::arg("row"), "(first, stop): the numbers of the row's spans.")
      .def("arrays", &SpanList::arrays,
           "(rows, starts, stops, begins, ends, offsets, ids, source) as penstock.Batch.spans gives them.")
      .def("get", &SpanList::get, py::arg("i"), "(row, start, stop, begins, ends, offset, shard, entry, source)")
      .def("raw", &SpanList::raw, py::arg("i"), "The entry's bytes, copied.")
      .def("view", &SpanList::view, py::arg("i"), "The entry's bytes as a read-only uint8 array, not copied.");
  py::class_<EntryNumbers>(module, "EntryNumbers", "Which entry each span of a batch has: an entry has one number.")
      .def("first_spans", &first_spans, "int64 [entries]: the first span of each entry.");
}

// What it is, and its arrays.
void add_arrays(BatchClass& type) {
  type.def_property_readonly("rows", [](const Batch& batch) { return batch.plan.rows; })
      .def_property_readonly("valid", [](const Batch& batch) { return batch.plan.valid; })
      .def_property_readonly("position", [](const Batch& batch) { return batch.plan.position; })
      .def_property_readonly("end", [](const Batch& batch) { return batch.plan.end; })
      .def_property_readonly(
          "of_all", [](const Batch& batch) { return batch.plan.of_all; }, "Valid rows of all ranks together.")
      .def_property_readonly("world_size", [](const Batch& batch) { return batch.plan.share.world_size; })
      .def_property_readonly("micro_batches", [](const Batch& batch) { return batch.plan.share.micro_batches; })
      .def_property_readonly("record_count", &Batch::record_count)
      .def_property_readonly(
          "lender",
          [](const Batch& batch) -> py::object {
            // Only PythonLoader lends, and what it lends with is a Python object.
            if (!batch.slab.lender()) return py::none();
            return py::reinterpret_borrow<py::object>(static_cast<PyObject*>(batch.slab.lender().get()));
          },
          "The object whose memory was lent for this batch (a pinned tensor), or None.")
      .def("records", &records, py::arg("dtype"),
           "Array over the records as read, of the stored records' dtype; not copied.")
      .def(
          "field", &field, py::arg("name"), py::arg("dtype"),
          "Array over one leaf of the records as read; not copied. None where there are no records, or the leaf is of\n"
          "another type.")
      .def("column", &column, py::arg("i"), py::arg("part"), py::arg("dtype"),
           "Array `part` of column i, whose type `dtype` is; not copied. None if the memory was lent.")
      .def("place", &place, py::arg("i"), py::arg("part"), py::arg("dtype"),
           "(byte of the batch's memory where array `part` of column i begins, its shape).");
}

// Of its rows: where they are, their spans, what is made of them after the fact.
void add_rows(BatchClass& type) {
  type.def("indices", &indices, "int64 [rows]: observations; -1 where padded.")
      .def("epochs", &epochs, "int64 [rows]; -1 where padded.")
      .def("sources", &sources, "int64 [rows]: number of each row's source; -1 where padded.")
      .def("first_records", &first_records,
           "int64 [rows]: where each row begins in the stream of its dataset; -1 where padded, or there is none.")
      .def("positions", &positions,
           "int64 [rows]: where each row stands in the job; -1 where padded, or read by itself.")
      .def("starts", &starts, "int64 [rows + 1]: first record of each row; empty if rows are fixed.")
      .def("spans", [](const BatchPtr& batch) { return SpanList(batch); })
      .def("values", &values, py::arg("i"), py::arg("dtype"),
           "Column i of the documents of all rows: [rows, dims…], of windows [spans, dims…].")
      .def("number_entries", &number_entries)
      .def("keep_targets", &keep_targets, py::arg("column"), py::arg("entries"), py::arg("firsts"), py::arg("ranges"),
           "Only targets in the ranges (uint64 [n, 2]) of their document count from now on; entry e's are those from\n"
           "firsts[e] to firsts[e + 1].")
      .def("spread_values", &spread, py::arg("column"), py::arg("entries"), py::arg("values"),
           "Fills the column with a value of each entry, given by their bytes.")
      .def("cast", &cast, py::arg("field"), py::arg("dtype"), "A field of all rows, cast densely.");
}

void register_reading(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  module.def(
      "read_rows",
      [local](const std::shared_ptr<Source>& source, const py::array_t<std::uint64_t, py::array::c_style>& indices,
              const MakerList& made, unsigned parts, std::uint64_t most_bytes,
              const ComputedList& computed) { return read(source, indices, made, parts, most_bytes, computed, local); },
      py::arg("source"), py::arg("indices"), py::arg("made"), py::arg("parts"), py::arg("most_bytes"),
      py::arg("computed") = ComputedList(),
      "Reads `parts` of observations (uint64 indices) at once, on this thread, without the GIL, in at most so many "
      "bytes.");
  module.def(
      "locate_rows",
      [local](const std::vector<std::shared_ptr<Source>>& sources, const Int64Array& numbers, const Int64Array& indices,
              const Int64Array& epochs, unsigned parts,
              std::uint64_t most_bytes) { return locate(sources, numbers, indices, epochs, parts, most_bytes, local); },
      py::arg("sources"), py::arg("numbers"), py::arg("indices"), py::arg("epochs"), py::arg("parts"),
      py::arg("most_bytes"),
      "Where observations lie, each of its source (by number in `sources`) in its epoch: a batch without records. All\n"
      "arrays are int64 of one length, rows of one shape.");
}

}  // namespace

void register_batch(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  register_spans(module);
  BatchClass type(module, "Batch", "A ready batch; see penstock.Batch.");
  add_arrays(type);
  add_rows(type);
  register_reading(module, local);
}

}  // namespace penstock::bindings
