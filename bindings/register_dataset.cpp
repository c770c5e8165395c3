// Datasets and their views (sources): opened without the GIL, looked at from Python.
#include "bindings/gil.h"
#include "bindings/register.h"
#include "core/base/error.h"
#include "core/base/retry_budget.h"
#include "core/io/cache/cached_store.h"
#include "core/io/file_ends.h"
#include "core/io/open_store.h"
#include "core/rows/source.h"
#include "core/rows/sub_view.h"
#include "layout/dataset.h"
#include "layout/dataset/dataset_files.h"
#include "layout/documents/opaque_entries.h"
#include "layout/foreign/field_arrays.h"
#include "layout/formats.h"
#include "layout/values/dataset_columns.h"
#include "layout/values/read_column.h"
#include "layout/values/with_columns.h"
#include "layout/windows/windows.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace py = pybind11;

namespace penstock::bindings {
namespace {

using layout::Dataset;
using layout::DatasetPtr;
using layout::Shard;
using layout::SpanKind;
using RunsUnlocked = py::call_guard<Unlocked>;
// pybind11 holds no shared_ptr to const; nothing that is bound here changes a dataset or a source.
using Opened = std::shared_ptr<Dataset>;
using View = std::shared_ptr<Source>;
using Names = std::vector<std::string>;

Opened opened(const DatasetPtr& dataset) {
  return std::const_pointer_cast<Dataset>(dataset);
}
View viewed(const std::shared_ptr<const Source>& source) {
  return std::const_pointer_cast<Source>(source);
}

py::object layout_name(const Dataset& dataset) {
  switch (dataset.spans) {
    case SpanKind::Compact: return py::str("compact");
    case SpanKind::Ids: return py::str("ids");
    default: return py::none();
  }
}

// (name, records, spans, entries, bytes of records and metadata)
py::tuple shard_tuple(const Shard& shard) {
  std::uint64_t bytes = shard.stream.bytes + shard.index.bytes + shard.directory.bytes + shard.data.bytes;
  if (!(shard.columns == shard.stream)) bytes += shard.columns.bytes;  // one file of another format has both
  return py::make_tuple(shard.name, shard.records, shard.spans, shard.entries, bytes);
}

Opened concatenate(const std::vector<Opened>& parts) {
  return opened(layout::concatenate({parts.begin(), parts.end()}));
}

layout::Checks parse_checks(const std::string& text) {
  if (text == "none") return layout::Checks::None;
  if (text == "index") return layout::Checks::Index;
  if (text == "all") return layout::Checks::All;
  raise(ErrorKind::InvalidArgument, "checks=\"{}\": must be \"index\", \"all\" or \"none\"", text);
}

using Stores = std::vector<std::optional<std::shared_ptr<ByteStore>>>;

// Where each of the paths or URLs is: those without a store are of this machine.
std::vector<Location> find(const std::vector<std::string>& urls, const Stores& stores,
                           const std::shared_ptr<LocalStore>& local) {
  std::vector<Location> found;
  found.reserve(urls.size());
  for (std::size_t i = 0; i < urls.size(); ++i) {
    found.push_back(stores.at(i) ? Location{*stores[i], urls[i]} : open_store(urls[i], local));
  }
  return found;
}

// While token files are opened, what a far store is asked for is asked for at once.
class EndsAhead {
 public:
  EndsAhead(const std::string& format, const std::vector<std::string>& paths, const Stores& stores) {
    const layout::FileFormat* const found = layout::find_format(format);
    if (found == nullptr) return;
    std::map<AsksAhead*, std::vector<std::string>> by_store;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      ByteStore* asked = stores.at(i).value_or(nullptr).get();
      if (const auto* const cached = dynamic_cast<CachedStore*>(asked)) asked = cached->inner().get();
      auto* const store = dynamic_cast<AsksAhead*>(asked);
      if (store == nullptr) continue;
      for (const Location& file : found->files({*stores[i], paths[i]})) by_store[store].push_back(file.path);
    }
    for (const auto& [store, files] : by_store) {
      store->look_ahead(files);
      stores_.push_back(store);
    }
  }
  ~EndsAhead() {
    for (AsksAhead* store : stores_) store->drop_ends();
  }
  EndsAhead(const EndsAhead&) = delete;
  EndsAhead& operator=(const EndsAhead&) = delete;

 private:
  std::vector<AsksAhead*> stores_;
};

// Values of a column as they are given out, `dtype` one of them: [count, dims…].
py::array read_column(const Opened& dataset, const std::string& name, std::uint64_t first, std::uint64_t count,
                      const py::dtype& dtype, const std::shared_ptr<LocalStore>& local) {
  const std::size_t column = dataset->find_column(name);
  std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(count)};
  for (const std::uint64_t dim : dataset->columns[column].dims) shape.push_back(static_cast<py::ssize_t>(dim));
  py::array out(dtype, shape);
  auto* data = static_cast<std::byte*>(out.mutable_data());
  const Unlocked released;
  RetryBudget budget;  // of all its shards
  const RetryBudget::Operation operation(budget);
  layout::read_column(*dataset, column, first, count, data, read_local_through(local, local->reading_once(count)));
  return out;
}

using Numbers = py::array_t<std::uint64_t, py::array::c_style>;
// (name, type stored, type given, values of a chunk, byte at which each chunk begins)
using CellFieldTuple = std::tuple<std::string, std::string, std::string, std::uint64_t, Numbers>;
// (byte of the file at which it begins or its bytes, bytes of a value, names of a category)
using ColumnTuple =
    std::tuple<std::variant<std::uint64_t, py::bytes>, std::uint32_t, std::optional<std::vector<std::string>>>;

// What Python holds, to be copied without the GIL.
template <typename T>
struct Copy {
  const T* first;
  std::size_t count;
  std::vector<T>* to;
};

Copy<std::uint64_t> copy_of(const Numbers& numbers, std::vector<std::uint64_t>& to) {
  return {numbers.data(), static_cast<std::size_t>(numbers.size()), &to};
}

Copy<std::uint64_t> take_field(const CellFieldTuple& field, layout::FieldArray& to) {
  const auto& [name, stored, given, chunk_values, chunks] = field;
  to = {name, ScalarType::parse(stored), ScalarType::parse(given), chunk_values, {}};
  return copy_of(chunks, to.chunks);
}

std::vector<Copy<std::byte>> take_columns(const std::vector<ColumnTuple>& columns, layout::ShardColumns& to) {
  std::vector<Copy<std::byte>> copies;
  for (const auto& [where, value_bytes, names] : columns) {
    layout::ColumnArray& array = to.arrays.emplace_back();
    array.value_bytes = value_bytes;
    if (const auto* const offset = std::get_if<std::uint64_t>(&where)) {
      array.offset = *offset;
    } else {
      const std::string_view bytes = std::get<py::bytes>(where);
      auto kept = std::make_shared<std::vector<std::byte>>();
      copies.push_back({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), kept.get()});
      array.kept = std::move(kept);
    }
    to.categories.push_back(names ? std::make_shared<const layout::Categories>(*names) : nullptr);
  }
  return copies;
}

void register_field_arrays(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  module.def(
      "open_field_arrays",
      [local](const std::string& path, std::pair<std::uint64_t, std::int64_t> stamp, const std::string& format,
              const Numbers& starts, const CellFieldTuple& genes, const CellFieldTuple& values,
              const std::string& columns_json, const std::vector<ColumnTuple>& columns,
              const std::string& features_fingerprint) {
        layout::FieldArraysFile file{open_store(path, local), {stamp.first, stamp.second}, format, {}, {}, nullptr,
                                     features_fingerprint};
        auto shard_columns = std::make_shared<layout::ShardColumns>();
        const std::array<Copy<std::uint64_t>, 3> numbers{copy_of(starts, file.arrays.starts),
                                                         take_field(genes, file.arrays.genes),
                                                         take_field(values, file.arrays.values)};
        const std::vector<Copy<std::byte>> kept = take_columns(columns, *shard_columns);
        const Unlocked released;
        for (const auto& copy : numbers) copy.to->assign(copy.first, copy.first + copy.count);
        for (const auto& copy : kept) copy.to->assign(copy.first, copy.first + copy.count);
        if (!columns.empty()) {
          file.columns = layout::parse_column_types(columns_json);
          file.shard_columns = std::move(shard_columns);
        }
        return opened(layout::open_field_arrays(std::move(file)));
      },
      py::kw_only(), py::arg("path"), py::arg("stamp"), py::arg("format"), py::arg("starts"), py::arg("genes"),
      py::arg("values"), py::arg("columns_json"), py::arg("columns"), py::arg("features_fingerprint"),
      "Opens a file whose fields are arrays that lie where this says; see layout/foreign/field_arrays.h.");
}

using DatasetClass = py::class_<Dataset, Opened>;

// What its views are made of.
void add_content(DatasetClass& type, const std::shared_ptr<LocalStore>& local) {
  type.def_readonly("path", &Dataset::path)
      .def_readonly("kind", &Dataset::kind)
      .def_readonly("mode", &Dataset::mode)
      .def_property_readonly("layout", &layout_name)
      .def_property_readonly("schema_json", [](const Dataset& dataset) { return dataset.schema.json(); })
      .def_property_readonly("columns_json",
                             [](const Dataset& dataset) {
                               return dataset.columns.empty() ? "[]" : layout::column_types_json(dataset.columns);
                             })
      .def(
          "read_column",
          [local](const Opened& dataset, const std::string& name, std::uint64_t first, std::uint64_t count,
                  const py::dtype& dtype) { return read_column(dataset, name, first, count, dtype, local); },
          py::arg("name"), py::arg("first"), py::arg("count"), py::arg("dtype"),
          "Values [first, first + count) of a column, as they are given out: [count, dims…].")
      .def_property_readonly(
          "stores",
          [local](const Dataset& dataset) {
            std::vector<std::pair<std::string, std::size_t>> stores;
            for (const std::shared_ptr<ByteStore>& store : dataset.stores) {
              if (store != local) stores.emplace_back(store->name(), store->reads_in_flight());
            }
            return stores;
          },
          "(how it reads, reads that it wants in flight) of each store but this machine's files.")
      .def_property_readonly(
          "is_remote",
          [local](const Dataset& dataset) {
            return std::find(dataset.stores.begin(), dataset.stores.end(), local) == dataset.stores.end();
          },
          "Whether none of it lies on this machine.");
}

// What is told of it.
void add_answers(DatasetClass& type) {
  type.def_readonly("features", &Dataset::features, "Where the dataset of its features is; empty without.")
      .def_readonly("features_fingerprint", &Dataset::features_fingerprint)
      .def_property_readonly(
          "entries",
          [](const Dataset& dataset) {
            std::uint64_t entries = 0;
            for (const Shard& shard : dataset.shards) entries += shard.entries;
            return entries;
          },
          "Of all shards.")
      .def(
          "categories",
          [](const Dataset& dataset, const std::string& column) {
            return dataset.column_table->categories(dataset.find_column(column));
          },
          py::arg("column"), "Names that the codes of a column stand for; none where it is no category.")
      .def_readonly("codec_json", &Dataset::codec_json)
      .def_readonly("tokenizer_json", &Dataset::tokenizer_json)
      .def_readonly("fingerprint", &Dataset::fingerprint)
      .def_property_readonly("records", &Dataset::record_count)
      .def_property_readonly("spans", &Dataset::span_count)
      .def(
          "data_path", [](const Dataset& dataset, std::size_t shard) { return dataset.shards.at(shard).data.path(); },
          py::arg("shard"), "Where the entries of a shard lie.")
      .def("task_json", &layout::task_of, py::call_guard<Unlocked>(), py::arg("shard"),
           "What the writer of a shard says that it was made from; null where its shard.json is not there.")
      .def("shards", [](const Dataset& dataset) {
        py::list shards;
        for (const Shard& shard : dataset.shards) shards.append(shard_tuple(shard));
        return shards;
      });
}

void register_formats(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  module.def(
      "format_names",
      [] {
        std::vector<std::string> names;
        for (const layout::FileFormat& format : layout::file_formats()) names.emplace_back(format.name);
        return names;
      },
      "What `format=` may be.");
  module.def(
      "recognise_format",
      [local](const std::string& path) -> std::optional<std::string> {
        const layout::FileFormat* format = layout::recognise_format(open_store(path, local));
        return format == nullptr ? std::nullopt : std::optional<std::string>(format->name);
      },
      RunsUnlocked(), py::arg("path"), "Name of the format of what is there; None: nothing is.");
  module.def(
      "open_as",
      [local](const std::string& format, const std::vector<std::string>& paths, const std::string& descr,
              const std::string& checks, const Stores& stores, const std::string& column) {
        const EndsAhead ahead(format, paths, stores);
        return opened(layout::open_as(format, find(paths, stores, local), {descr, column, parse_checks(checks)}));
      },
      RunsUnlocked(), py::arg("format"), py::arg("paths"), py::arg("descr_json"), py::arg("checks"), py::arg("stores"),
      py::arg("column") = "",
      "Opens paths of one format end to end; of each its store, None for this machine's files.");
  module.def(
      "open_features",
      [](const Opened& dataset) {
        const Location location{dataset->stores.front(), dataset->features};
        return opened(layout::open_as("penstock", {location}, {}));
      },
      RunsUnlocked(), py::arg("dataset"), "The dataset of its features, which lies in the same store.");
  module.def(
      "opaque_texts",
      [local](const Opened& dataset) {
        std::vector<std::string> texts;
        {
          const Unlocked released;
          texts = layout::read_opaque_entries(*dataset, read_local_through(local, local->reading_once(1)));
        }
        return texts;
      },
      py::arg("dataset"), "Entries of a dataset of entries without records. Raises UnicodeDecodeError.");
  module.def("concatenate", &concatenate, RunsUnlocked(), py::arg("datasets"), "Several datasets as one.");
}

void register_source(py::module_& module) {
  py::class_<SourceIdentity>(module, "SourceIdentity", "What a job's state says of a source.")
      .def(py::init([](std::string fingerprint, std::uint64_t shards, std::uint64_t records, std::string view) {
             return SourceIdentity{std::move(fingerprint), shards, records, std::move(view), ""};
           }),
           py::kw_only(), py::arg("fingerprint"), py::arg("shards"), py::arg("records"), py::arg("view"))
      .def(
          "named",
          [](SourceIdentity identity, std::string name) {
            identity.name = std::move(name);
            return identity;
          },
          py::arg("name"), "The same, called `name` by stages.");
  py::class_<Source, View>(module, "Source", "A view of a dataset: what one index selects.")
      .def_property_readonly("size", [](const Source& source) { return source.info().size; })
      .def_property_readonly("identity", [](const Source& source) { return source.info().identity; })
      .def_property_readonly("stored_record_bytes",
                             [](const Source& source) { return source.info().stored_record_bytes; })
      .def_property_readonly("fields_apart", [](const Source& source) { return source.info().fields_apart; })
      .def_property_readonly("ragged", [](const Source& source) { return source.info().shape.ragged; })
      .def_property_readonly("row_length", [](const Source& source) { return source.info().shape.length; })
      .def(
          "base_indices",
          [](const Source& source, const py::array_t<std::int64_t, py::array::c_style>& indices) {
            py::array_t<std::int64_t> out(std::vector<py::ssize_t>(indices.shape(), indices.shape() + indices.ndim()));
            const std::int64_t* const from = indices.data();
            std::int64_t* const to = out.mutable_data();
            const auto count = static_cast<std::uint64_t>(indices.size());
            const Unlocked released;
            for (std::uint64_t i = 0; i < count; ++i) {
              const bool is_one = from[i] >= 0;
              to[i] = is_one ? static_cast<std::int64_t>(source.base_index(static_cast<std::uint64_t>(from[i]))) : -1;
            }
            return out;
          },
          py::arg("indices"), "int64 of the same shape: numbers in the whole view; -1 of -1. All are below the size.");
}

void register_views(py::module_& module) {
  module.def(
      "make_windows",
      [](const Opened& dataset, std::uint64_t window, std::uint64_t lookahead, const Names& columns,
         std::uint64_t phase_window) {
        return viewed(phase_window == 0
                          ? layout::make_windows(dataset, window, lookahead, columns)
                          : layout::make_windows_with_phase(dataset, window, lookahead, columns, phase_window));
      },
      py::arg("dataset"), py::arg("window"), py::arg("lookahead"), py::arg("columns"), py::arg("phase_window") = 0,
      "The view of windows; with a phase_window each epoch begins at another record.");
  module.def(
      "make_documents",
      [](const Opened& dataset, const Names& columns, std::optional<std::uint64_t> most_records, bool refuse) {
        return viewed(layout::make_documents(dataset, columns, {most_records.value_or(UINT64_MAX), refuse}));
      },
      py::arg("dataset"), py::arg("columns"), py::arg("most_records") = py::none(), py::arg("refuse") = false,
      "The view of documents; of longer ones than most_records their first records, or an error.");
  module.def(
      "make_values",
      [](const Opened& dataset, const Names& columns) { return viewed(layout::make_values(dataset, columns)); },
      py::arg("dataset"), py::arg("columns"), "The view of entries, of which only values of columns are read.");
  module.def(
      "make_slice",
      [](const View& source, std::uint64_t first, std::int64_t step, std::uint64_t count) {
        return viewed(std::make_shared<const SubView>(source, SliceRange{first, step, count}));
      },
      py::arg("source"), py::arg("first"), py::arg("step"), py::arg("count"),
      "Observations first, first + step, … of a view, `count` of them.");
  module.def(
      "make_selection",
      [](const View& source, const py::array_t<std::uint64_t, py::array::c_style>& selected) {
        std::vector<std::uint64_t> numbers(selected.data(), selected.data() + selected.size());
        const Unlocked released;
        return viewed(std::make_shared<const SubView>(source, std::move(numbers)));
      },
      py::arg("source"), py::arg("selected"), "The observations of a view that `selected` names, in this order.");
}

void register_split(py::module_& module) {
  module.def(
      "make_split",
      [](const View& source, std::uint64_t one_in, std::uint64_t seed, bool held_out) {
        return viewed(std::make_shared<const SubView>(source, Split{one_in, seed, held_out}));
      },
      py::arg("source"), py::arg("one_in"), py::arg("seed"), py::arg("held_out"),
      "One of each run of `one_in` observations, or the others.");
  module.def(
      "make_parts",
      [](const View& source, const View& units, std::uint64_t parts) {
        return viewed(std::make_shared<const SubView>(source, UnitParts{units, parts}));
      },
      py::arg("source"), py::arg("units"), py::arg("parts"),
      "Observations of `units` cut into `parts`: those of its whole view are the source's.");
  module.def(
      "select_shards",
      [](const Opened& dataset, const std::vector<std::uint64_t>& shards) {
        return opened(layout::select_shards(dataset, shards));
      },
      RunsUnlocked(), py::arg("dataset"), py::arg("shards"), "Some shards of a dataset, in this order, as a dataset.");
}

}  // namespace

void register_dataset(py::module_& module, const std::shared_ptr<LocalStore>& local) {
  DatasetClass type(module, "Dataset", "An opened dataset; see penstock.Dataset.");
  add_content(type, local);
  add_answers(type);
  register_formats(module, local);
  register_field_arrays(module, local);
  register_source(module);
  register_views(module);
  register_split(module);
}

}  // namespace penstock::bindings
